package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"bramble.dev/bramble/server/objects"
)

// delete serves DELETE of one object. The answer is a Status when it is gone,
// and the object when it only began to end (grace, finalizers).
func (s *server) delete(w http.ResponseWriter, r *request) error {
	f, err := accepts(r.Request, true)
	if err != nil {
		return err
	}
	opts, err := deleteOptions(r)
	if err != nil {
		return err
	}
	res, deleted, err := s.cfg.Registry.Delete(r.Context(), r.kind, r.Namespace, r.Name, opts)
	if err != nil {
		return err
	}
	if !deleted {
		return s.respond(w, r, http.StatusOK, f, res, nil)
	}
	addWarnings(w, res.Warnings)
	status, err := deletedStatus(r.kind, r.Name, res)
	if err != nil {
		return err
	}
	writeStatus(w, status)
	return nil
}

func deletedStatus(k *objects.Kind, name string, res objects.Result) (metav1.Status, error) {
	var object metav1.PartialObjectMetadata
	if res.Body.Len() > 0 {
		if err := json.Unmarshal(res.Body.Bytes(), &object); err != nil {
			return metav1.Status{}, fmt.Errorf("cannot read the deleted %s: %w", k.Kind, err)
		}
	}
	return metav1.Status{
		Status: metav1.StatusSuccess, Code: http.StatusOK,
		Details: &metav1.StatusDetails{Name: name, Group: k.Group, Kind: k.Plural, UID: object.UID},
	}, nil
}

// deleteOptions reads the options from the body, or from the query when there
// is no body.
func deleteOptions(r *request) (metav1.DeleteOptions, error) {
	var opts metav1.DeleteOptions
	data, media, err := readBody(r.Request)
	if err != nil {
		return opts, err
	}
	if len(bytes.TrimSpace(data)) > 0 {
		// Clients name the options' kind by their own group or by the object's.
		_, err = decode(data, media, &opts, optionsKind(data, media, r.kind))
	} else {
		opts, err = deleteQuery(r.URL.Query())
	}
	if err != nil {
		return opts, err
	}
	if all := validation.ValidateDeleteOptions(&opts); len(all) > 0 {
		return opts, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", all)
	}
	return opts, nil
}

// optionsKind is the DeleteOptions that the body says it is, where it is one:
// "v1", "meta.k8s.io/v1" and the object's own group are all in use.
func optionsKind(data []byte, media string, k *objects.Kind) schema.GroupVersionKind {
	for _, gv := range []schema.GroupVersion{{Version: "v1"}, metav1.SchemeGroupVersion, k.GroupVersion()} {
		want := gv.WithKind("DeleteOptions")
		var opts metav1.DeleteOptions
		if _, err := decode(data, media, &opts, want); err == nil {
			return want
		}
	}
	return schema.GroupVersionKind{Version: "v1", Kind: "DeleteOptions"}
}

func deleteQuery(q url.Values) (metav1.DeleteOptions, error) {
	opts := metav1.DeleteOptions{DryRun: q["dryRun"]}
	if text := q.Get("gracePeriodSeconds"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return opts, badRequest("gracePeriodSeconds: Invalid value: %q: must be a number of seconds", text)
		}
		opts.GracePeriodSeconds = &seconds
	}
	if text := q.Get("propagationPolicy"); text != "" {
		policy := metav1.DeletionPropagation(text)
		opts.PropagationPolicy = &policy
	}
	if text := q.Get("orphanDependents"); text != "" {
		orphan := isTrue(text)
		//lint:ignore SA1019 old clients send it
		opts.OrphanDependents = &orphan
	}
	uid, rev := types.UID(q.Get("preconditions.uid")), q.Get("preconditions.resourceVersion")
	if uid != "" || rev != "" {
		opts.Preconditions = &metav1.Preconditions{}
		if uid != "" {
			opts.Preconditions.UID = &uid
		}
		if rev != "" {
			opts.Preconditions.ResourceVersion = &rev
		}
	}
	return opts, nil
}
