package rest

import (
	"encoding/json"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"bramble.dev/bramble/server/objects"
)

// review serves POST of a kind that is answered and not stored.
func (s *server) review(w http.ResponseWriter, r *request) error {
	gvk := r.kind.GroupVersion().WithKind(r.kind.Kind)
	gvk.Version = r.Version // perhaps an older one
	return s.answer(w, r, r.kind.New(), gvk, func(obj objects.Object) (objects.Object, error) {
		if err := checkNamespace(obj, r.kind.Namespaced, r.Namespace); err != nil {
			return nil, err
		}
		return r.kind.Answer(r.Context(), r.Namespace, obj)
	})
}

// answerSubresource serves POST to a subresource that stores nothing.
func (s *server) answerSubresource(w http.ResponseWriter, r *request) error {
	return s.answer(w, r, r.sub.New(), r.sub.GroupVersionKind, func(obj objects.Object) (objects.Object, error) {
		if got := obj.GetName(); got != "" && got != r.Name {
			return nil, badRequest("the name of the object (%s) does not match the name on the URL (%s)", got, r.Name)
		}
		if err := checkNamespace(obj, r.kind.Namespaced, r.Namespace); err != nil {
			return nil, err
		}
		return r.sub.Answer(r.Context(), r.Namespace, r.Name, obj)
	})
}

// answer reads the body into obj, which is of kind gvk, and sends what do makes
// of it.
func (s *server) answer(w http.ResponseWriter, r *request, obj objects.Object, gvk schema.GroupVersionKind, do func(objects.Object) (objects.Object, error)) error {
	if _, err := accepts(r.Request, false); err != nil {
		return err
	}
	_, warnings, err := readInto(r, "CreateOptions", obj, gvk)
	if err != nil {
		return err
	}
	result, err := do(obj)
	addWarnings(w, warnings)
	if err != nil {
		return err
	}
	result.GetObjectKind().SetGroupVersionKind(gvk)
	body, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("cannot encode the answer, a %s: %w", gvk.Kind, err)
	}
	writeJSON(w, http.StatusCreated, append(body, '\n'))
	return nil
}
