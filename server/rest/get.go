package rest

import (
	"net/http"

	"bramble.dev/bramble/server/objects"
)

// get serves one object, stored or computed.
func (s *server) get(w http.ResponseWriter, r *request) error {
	f, err := accepts(r.Request, true)
	if err != nil {
		return err
	}
	stored, err := s.cfg.Registry.Get(r.Context(), r.kind, r.Namespace, r.Name)
	if err != nil {
		return err
	}
	body, err := s.shape(r, f, stored)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, body)
	return nil
}

// shape turns one object into the form that the client asked for.
func (s *server) shape(r *request, f form, stored objects.Stored) ([]byte, error) {
	switch f {
	case formTable:
		return s.tableOf(r, revisionMeta(stored.Rev), []objects.Stored{stored}, true)
	case formMetadata:
		return metadataOf(stored.Body.Bytes())
	}
	return stored.Body.Bytes(), nil
}

// respond sends the outcome of a write, with its warnings.
func (s *server) respond(w http.ResponseWriter, r *request, code int, f form, res objects.Result, warnings []string) error {
	body, err := s.shape(r, f, res.Stored)
	if err != nil {
		return err
	}
	addWarnings(w, warnings)
	addWarnings(w, res.Warnings)
	writeJSON(w, code, body)
	return nil
}
