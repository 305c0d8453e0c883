package rest

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// exec serves pods/NAME/exec: a command in one of the pod's containers.
func (s *server) exec(w http.ResponseWriter, r *request) error {
	query, err := streamQuery(r.URL.Query())
	if err != nil {
		return err
	}
	command := r.URL.Query()["command"]
	if len(command) == 0 {
		return badRequest("command: Required value: the command to execute")
	}
	query["command"] = command
	return s.toContainer(w, r, "exec", query)
}

// toContainer passes a stream on to one of the pod's containers.
func (s *server) toContainer(w http.ResponseWriter, r *request, what string, query url.Values) error {
	if err := s.mayStream(r); err != nil {
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
	path := fmt.Sprintf("/%s/%s/%s/%s", what, pod.Namespace, pod.Name, container)
	return s.passThrough(w, r, pod.Spec.NodeName, node, url.URL{Path: path, RawQuery: query.Encode()})
}

// streamQuery is what a client asks for of its streams, in the kubelet's names.
func streamQuery(q url.Values) (url.Values, error) {
	out := url.Values{}
	for name, kubelets := range map[string]string{"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"} {
		text := q.Get(name)
		if text == "" {
			continue
		}
		asked, err := strconv.ParseBool(text)
		if err != nil {
			return nil, badRequest("%s: Invalid value: %q: must be true or false", name, text)
		}
		if asked {
			out.Set(kubelets, "1")
		}
	}
	if !out.Has("input") && !out.Has("output") && !out.Has("error") {
		return nil, badRequest("you must specify at least 1 of stdin, stdout, stderr")
	}
	return out, nil
}
