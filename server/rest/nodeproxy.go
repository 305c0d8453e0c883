package rest

import (
	"fmt"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// nodeMetrics is the only path of a node's agent that is served.
const nodeMetrics = "/metrics"

// nodeProxy serves nodes/NAME/proxy/metrics: what the node's agent says of its board,
// for Prometheus.
func (s *server) nodeProxy(w http.ResponseWriter, r *request) error {
	if r.Tail != nodeMetrics {
		return apierrors.NewBadRequest(fmt.Sprintf("of a node's agent only %s is served: /api/v1/nodes/%s/proxy%[1]s", nodeMetrics, r.Name))
	}
	if _, err := s.cfg.Registry.Get(r.Context(), r.kind, "", r.Name); err != nil {
		return err
	}
	target := url.URL{Scheme: "http", Host: nodeHost, Path: nodeMetrics}
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, target.String(), nil)
	if err != nil {
		return fmt.Errorf("cannot ask node %s for metrics: %w", r.Name, err)
	}
	resp, err := s.transport(r.Name).RoundTrip(req)
	if err != nil {
		return nodeUnreachable(r.Name, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nodeError(r.Name, resp)
	}
	w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
	w.WriteHeader(http.StatusOK)
	stream(w, resp.Body)
	return nil
}
