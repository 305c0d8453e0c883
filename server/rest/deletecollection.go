package rest

import (
	"encoding/json"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/objects"
)

// deleteCollection serves DELETE of a collection, or of what selectors and
// limit take from it: each object as DELETE of it would. The answer is the list
// of them. Where one fails the rest is left, and the error is the answer.
func (s *server) deleteCollection(w http.ResponseWriter, r *request) error {
	listing, err := listOptions(r.URL.Query())
	if err != nil {
		return err
	}
	opts, err := deleteOptions(r)
	if err != nil {
		return err
	}
	found, err := s.find(r, listing)
	if err != nil {
		return err
	}
	taken := found.Items[:0:0]
	for _, item := range found.Items {
		name, err := nameOf(item)
		if err != nil {
			return err
		}
		res, _, err := s.cfg.Registry.Delete(r.Context(), r.kind, r.Namespace, name, opts)
		switch {
		case apierrors.IsNotFound(err): // somebody else was faster
		case err != nil:
			return err
		default:
			addWarnings(w, res.Warnings)
			taken = append(taken, objects.Stored{Rev: res.Rev, Body: res.Body})
		}
	}
	return sendList(w, r.Request, r.kind.GroupVersion().String(), r.kind.Kind+"List", listMeta(found), taken, nil)
}

func nameOf(item objects.Stored) (string, error) {
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(item.Body.Bytes(), &object); err != nil {
		return "", fmt.Errorf("cannot read a stored object's metadata: %w", err)
	}
	return object.Name, nil
}
