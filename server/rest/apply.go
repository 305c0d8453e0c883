package rest

import (
	"net/http"
)

// apply serves a PATCH of application/apply-patch+yaml: server-side apply.
func (s *server) apply(w http.ResponseWriter, r *request, f form, opts writeOptions, data []byte) error {
	if opts.FieldManager = r.URL.Query().Get("fieldManager"); opts.FieldManager == "" {
		return badRequest("fieldManager is required for apply patch")
	}
	// The registry merges fields as they come; what is unknown or double is
	// found here, by a strict look.
	faults, err := decodeYAML(data, r.kind.New(), r.kind.GroupVersionKind)
	if err != nil {
		return err
	}
	warnings, err := opts.judge(faults, r.kind.GroupVersionKind)
	if err != nil {
		return err
	}
	res, created, err := s.cfg.Registry.Apply(r.Context(), r.kind, r.subresource(), r.Namespace, r.Name, data, opts.force, opts.WriteOptions)
	if err != nil {
		addWarnings(w, warnings)
		return err
	}
	code := http.StatusOK
	if created {
		code = http.StatusCreated
	}
	return s.respond(w, r, code, f, res, warnings)
}
