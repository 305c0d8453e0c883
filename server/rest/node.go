package rest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// nodeHost stands where a URL wants a host: a node's transport reaches one
// server only.
const nodeHost = "node"

// boundPod reads the request's pod and the way to the node that it runs on.
func (s *server) boundPod(r *request, name string) (*corev1.Pod, http.RoundTripper, error) {
	stored, err := s.cfg.Registry.Get(r.Context(), r.kind, r.Namespace, name)
	if err != nil {
		return nil, nil, err
	}
	var pod corev1.Pod
	if err := json.Unmarshal(stored.Body.Bytes(), &pod); err != nil {
		return nil, nil, fmt.Errorf("cannot read pod %s: %w", name, err)
	}
	if pod.Spec.NodeName == "" {
		return nil, nil, badRequest("pod %s does not have a host assigned: it waits for a node (see its PodScheduled condition)", name)
	}
	return &pod, s.transport(pod.Spec.NodeName), nil
}

// transport returns the way to a node, which is looked for with each request.
func (s *server) transport(node string) http.RoundTripper {
	return toNode{s.cfg.Nodes, node}
}

type toNode struct {
	nodes Nodes // may be nil
	name  string
}

// RoundTrip follows http.RoundTripper. For a node that is not connected it returns
// an error that says so.
func (n toNode) RoundTrip(r *http.Request) (*http.Response, error) {
	if n.nodes == nil {
		return nil, notConnected(n.name, nil)
	}
	t, err := n.nodes.Transport(r.Context(), n.name)
	if err != nil {
		return nil, notConnected(n.name, err)
	}
	return t.RoundTrip(r)
}

func notConnected(node string, err error) error {
	why := ""
	if err != nil {
		why = fmt.Sprintf(" (%v)", err)
	}
	return unavailable("cannot reach node %q%s: check that the board has power and a link, and bramble-agent on it", node, why)
}

// nodeError makes a Status of a node's answer that is no success: the node's
// own where it sent one.
func nodeError(node string, resp *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, 16<<10))
	if err != nil {
		return unavailable("node %q broke off its answer: %v", node, err)
	}
	var status metav1.Status
	if json.Unmarshal(text, &status) == nil && status.Kind == "Status" {
		return &apierrors.StatusError{ErrStatus: status}
	}
	answer := apierrors.NewGenericServerResponse(resp.StatusCode, "get", schema.GroupResource{Resource: "nodes"}, node, "", 0, true)
	if message := strings.TrimSpace(string(text)); message != "" {
		answer.ErrStatus.Message = message
	}
	return answer
}

// nodeUnreachable is the error of a request that got no answer.
func nodeUnreachable(node string, err error) error {
	if _, known := statusOf(err); known {
		return err
	}
	return unavailable("node %q did not answer (%v): try again; if it goes on, look at bramble-agent on that node", node, err)
}
