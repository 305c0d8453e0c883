package rest

import (
	"net/http"

	"bramble.dev/bramble/server/objects"
)

// update serves PUT of an object or of a subresource that generic code serves.
func (s *server) update(w http.ResponseWriter, r *request) error {
	in, err := readObject(r, "UpdateOptions")
	if err != nil {
		return err
	}
	wanted := in.obj
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
	res, err := s.cfg.Registry.Update(r.Context(), r.kind, r.subresource(), r.Namespace, r.Name, change, in.opts.WriteOptions)
	if err != nil {
		addWarnings(w, in.warnings)
		return err
	}
	return s.respond(w, r, http.StatusOK, in.form, res, in.warnings)
}
