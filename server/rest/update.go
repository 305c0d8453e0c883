package rest

import (
	"net/http"

	"bramble.dev/bramble/server/objects"
)

// update serves PUT of an object or of a subresource that generic code serves.
func (s *server) update(w http.ResponseWriter, r *request) error {
	f, err := accepts(r.Request, true)
	if err != nil {
		return err
	}
	opts, err := readWriteOptions(r.Request, "UpdateOptions")
	if err != nil {
		return err
	}
	data, media, err := readBody(r.Request)
	if err != nil {
		return err
	}
	wanted := r.kind.New()
	faults, err := decode(data, media, wanted, r.kind.GroupVersionKind)
	if err != nil {
		return err
	}
	warnings, err := opts.judge(faults, r.kind.GroupVersionKind)
	if err != nil {
		return err
	}
	if err := checkName(wanted, r.Name); err != nil {
		return err
	}
	if err := checkNamespace(wanted, r.kind.Namespaced, r.Namespace); err != nil {
		return err
	}
	setKind(wanted, r.kind)
	change := func(objects.Object) (objects.Object, error) {
		obj, ok := wanted.DeepCopyObject().(objects.Object) // the registry may try again
		if !ok {
			return nil, wrongType(r.kind, wanted)
		}
		return obj, nil
	}
	res, err := s.cfg.Registry.Update(r.Context(), r.kind, r.subresource(), r.Namespace, r.Name, change, opts.WriteOptions)
	if err != nil {
		addWarnings(w, warnings)
		return err
	}
	return s.respond(w, r, http.StatusOK, f, res, warnings)
}
