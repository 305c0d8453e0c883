package rest

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// log serves pods/NAME/log: it streams what the pod's node says, as it comes.
func (s *server) log(w http.ResponseWriter, r *request) error {
	query, err := logQuery(r.URL.Query())
	if err != nil {
		return err
	}
	pod, node, err := s.boundPod(r, r.Name)
	if err != nil {
		return err
	}
	container, err := chooseContainer(pod, r.URL.Query().Get("container"))
	if err != nil {
		return err
	}
	target := url.URL{Scheme: "http", Host: nodeHost, RawQuery: query.Encode()}
	target.Path = fmt.Sprintf("/containerLogs/%s/%s/%s", pod.Namespace, pod.Name, container)
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, target.String(), nil)
	if err != nil {
		return fmt.Errorf("cannot ask node %s for logs: %w", pod.Spec.NodeName, err)
	}
	resp, err := node.RoundTrip(req)
	if err != nil {
		return nodeUnreachable(pod.Spec.NodeName, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nodeError(pod.Spec.NodeName, resp)
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusOK)
	stream(w, resp.Body)
	return nil
}

// stream copies and sends each piece at once. It ends with either side; an
// error has nobody left to tell.
func stream(w http.ResponseWriter, body io.Reader) {
	control := http.NewResponseController(w)
	_ = control.Flush()
	buf := make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			_ = control.SetWriteDeadline(time.Now().Add(writeTimeout))
			if _, err := w.Write(buf[:n]); err != nil {
				return
			}
			_ = control.Flush()
			_ = control.SetWriteDeadline(time.Time{}) // it is taken; HTTP/2 would end a quiet stream too
		}
		if err != nil {
			return
		}
	}
}

// logQuery takes over what the node's side understands, checked.
func logQuery(q url.Values) (url.Values, error) {
	out := url.Values{}
	for _, name := range []string{"follow", "previous", "timestamps"} {
		if text := q.Get(name); text != "" {
			v, err := strconv.ParseBool(text)
			if err != nil {
				return nil, badRequest("%s: Invalid value: %q: must be true or false", name, text)
			}
			out.Set(name, strconv.FormatBool(v))
		}
	}
	for _, name := range []string{"tailLines", "sinceSeconds", "limitBytes"} {
		if text := q.Get(name); text != "" {
			if n, err := strconv.ParseInt(text, 10, 64); err != nil || n < 0 || n == 0 && name != "tailLines" {
				return nil, badRequest("%s: Invalid value: %q: must be a number greater than 0", name, text)
			}
			out.Set(name, text)
		}
	}
	if text := q.Get("sinceTime"); text != "" {
		if _, err := time.Parse(time.RFC3339Nano, text); err != nil {
			return nil, badRequest("sinceTime: Invalid value: %q: must be a time as in RFC 3339", text)
		}
		if out.Has("sinceSeconds") {
			return nil, badRequest("at most one of `sinceTime` or `sinceSeconds` may be specified")
		}
		out.Set("sinceTime", text)
	}
	return out, nil
}

// chooseContainer finds the container that is meant, in the kubelet's words
// where it cannot.
func chooseContainer(pod *corev1.Pod, name string) (string, error) {
	var containers, inits []string
	for _, c := range pod.Spec.Containers {
		containers = append(containers, c.Name)
	}
	for _, c := range pod.Spec.InitContainers {
		inits = append(inits, c.Name)
	}
	if name != "" {
		if slices.Contains(containers, name) || slices.Contains(inits, name) {
			return name, nil
		}
		return "", badRequest("container %s is not valid for pod %s: it has [%s]", name, pod.Name, strings.Join(slices.Concat(containers, inits), " "))
	}
	if len(containers) == 1 {
		return containers[0], nil
	}
	choice := fmt.Sprintf("a container name must be specified for pod %s, choose one of: [%s]", pod.Name, strings.Join(containers, " "))
	if len(inits) > 0 {
		choice += fmt.Sprintf(" or one of the init containers: [%s]", strings.Join(inits, " "))
	}
	return "", badRequest("%s", choice)
}
