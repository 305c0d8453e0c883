package rest

import (
	"fmt"
	"net/http"
	"net/url"
)

// portForward serves pods/NAME/portforward: connections to the pod's ports.
func (s *server) portForward(w http.ResponseWriter, r *request) error {
	if err := s.mayStream(r); err != nil {
		return err
	}
	pod, node, err := s.boundPod(r, r.Name)
	if err != nil {
		return err
	}
	path := fmt.Sprintf("/portForward/%s/%s", pod.Namespace, pod.Name)
	return s.passThrough(w, r, pod.Spec.NodeName, node, url.URL{Path: path})
}
