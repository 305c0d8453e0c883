package rest

import (
	"net/http"
)

// apply serves a PATCH of application/apply-patch+yaml (server-side apply).
func (s *server) apply(http.ResponseWriter, *request, form, writeOptions, []byte) error {
	return unsupportedMediaType("server-side apply (application/apply-patch+yaml) is not served yet: use kubectl apply without --server-side")
}
