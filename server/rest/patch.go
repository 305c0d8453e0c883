package rest

import (
	"encoding/json"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"bramble.dev/bramble/server/objects"
)

// patch serves PATCH: the patch is applied to the newest state, again when
// somebody else wrote in between.
func (s *server) patch(w http.ResponseWriter, r *request) error {
	f, err := accepts(r.Request, true)
	if err != nil {
		return err
	}
	opts, err := readWriteOptions(r.Request, "PatchOptions")
	if err != nil {
		return err
	}
	data, media, err := readBody(r.Request)
	if err != nil {
		return err
	}
	if types.PatchType(media) == types.ApplyYAMLPatchType {
		return s.apply(w, r, f, opts, data)
	}
	p, err := readPatch(types.PatchType(media), data, r.kind.New)
	if err != nil {
		return err
	}
	var warnings []string
	change := func(current objects.Object) (objects.Object, error) {
		wanted, faults, err := patched(r.kind, current, p)
		if err != nil {
			return nil, err
		}
		if warnings, err = opts.judge(faults, r.kind.GroupVersionKind); err != nil {
			return nil, err
		}
		if err := checkName(wanted, r.Name); err != nil {
			return nil, err
		}
		return wanted, checkNamespace(wanted, r.kind.Namespaced, r.Namespace)
	}
	res, err := s.cfg.Registry.Update(r.Context(), r.kind, r.subresource(), r.Namespace, r.Name, change, opts.WriteOptions)
	if err != nil {
		addWarnings(w, warnings)
		return err
	}
	return s.respond(w, r, http.StatusOK, f, res, warnings)
}

// patched returns the object that p makes of current.
func patched(k *objects.Kind, current objects.Object, p patcher) (objects.Object, []error, error) {
	setKind(current, k)
	before, err := json.Marshal(current)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot encode the %s to patch: %w", k.Kind, err)
	}
	after, err := p.apply(before)
	if err != nil {
		return nil, nil, err
	}
	wanted := k.New()
	faults, err := decodeJSON(after, wanted, k.GroupVersionKind)
	if err != nil {
		return nil, nil, cannotProcess(k, current.GetName(), err)
	}
	setKind(wanted, k)
	return wanted, append(p.faults, faults...), nil
}

// cannotProcess is the 422 of a patch that is well formed but whose outcome is
// no object.
func cannotProcess(k *objects.Kind, name string, err error) error {
	status, _ := statusOf(err)
	if status.Code != http.StatusBadRequest {
		return err
	}
	out := apierrors.NewInvalid(k.GroupKind(), name, nil)
	out.ErrStatus.Message = fmt.Sprintf("%s %q is invalid: patch: %s", k.Kind, name, status.Message)
	return out
}
