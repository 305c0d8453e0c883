package rest

import (
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// maxWarnings is how many Warning headers an answer carries at most, and
// maxWarningBytes how long each may be: clients have limits on headers.
const (
	maxWarnings     = 64
	maxWarningBytes = 512
)

// addWarnings adds a "Warning: 299" header for each text (RFC 9111 §5.5 in its
// older form, as Kubernetes sends it).
func addWarnings(w http.ResponseWriter, texts []string) {
	for _, text := range texts {
		if len(w.Header().Values("Warning")) >= maxWarnings {
			return
		}
		if len(text) > maxWarningBytes {
			text = text[:maxWarningBytes-3] + "..."
		}
		if header, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
			w.Header().Add("Warning", header)
		}
	}
}
