package rest

import (
	"net/http"
)

// create serves POST to a collection.
func (s *server) create(w http.ResponseWriter, r *request) error {
	in, err := readObject(r, "CreateOptions")
	if err != nil {
		return err
	}
	if err := checkNamespace(in.obj, r.kind.Namespaced, r.Namespace); err != nil {
		return err
	}
	setKind(in.obj, r.kind)
	res, err := s.cfg.Registry.Create(r.Context(), r.kind, r.Namespace, in.obj, in.opts.WriteOptions)
	if err != nil {
		addWarnings(w, in.warnings)
		return err
	}
	return s.respond(w, r, http.StatusCreated, in.form, res, in.warnings)
}
