package rest

import (
	"net/http"
)

// create serves POST to a collection.
func (s *server) create(w http.ResponseWriter, r *request) error {
	f, err := accepts(r.Request, true)
	if err != nil {
		return err
	}
	opts, err := readWriteOptions(r.Request, "CreateOptions")
	if err != nil {
		return err
	}
	data, media, err := readBody(r.Request)
	if err != nil {
		return err
	}
	obj := r.kind.New()
	faults, err := decode(data, media, obj, r.kind.GroupVersionKind)
	if err != nil {
		return err
	}
	warnings, err := opts.judge(faults, r.kind.GroupVersionKind)
	if err != nil {
		return err
	}
	if err := checkNamespace(obj, r.kind.Namespaced, r.Namespace); err != nil {
		return err
	}
	setKind(obj, r.kind)
	res, err := s.cfg.Registry.Create(r.Context(), r.kind, r.Namespace, obj, opts.WriteOptions)
	if err != nil {
		addWarnings(w, warnings)
		return err
	}
	return s.respond(w, r, http.StatusCreated, f, res, warnings)
}
