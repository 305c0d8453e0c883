package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Apply is server-side apply: patch (YAML or JSON) says the fields that
// opts.FieldManager wants to own, and the object, or of it what sub owns, is
// made so. A missing object is created, and created is true. It fails with 409
// and the conflicting fields as causes if another manager owns one of them
// with another value, unless force takes it over.
func (r *Registry) Apply(ctx context.Context, k *Kind, sub, namespace, name string, patch []byte, force bool, opts WriteOptions) (res Result, created bool, err error) {
	if opts.FieldManager == "" {
		return Result{}, false, apierrors.NewBadRequest("fieldManager is required for apply patch")
	}
	wanted, err := r.readApply(k, namespace, name, patch)
	if err != nil {
		return Result{}, false, err
	}
	manager := r.managers[managerKey{k, sub}]
	if manager == nil {
		return Result{}, false, apierrors.NewNotFound(k.GroupResource(), name+"/"+sub)
	}
	merge := func(live Object) (Object, error) {
		merged, err := manager.Apply(live, wanted.DeepCopy(), opts.FieldManager, force)
		if err != nil {
			return nil, applyError(k, name, err)
		}
		obj, ok := merged.(Object)
		if !ok {
			return nil, apierrors.NewInternalError(fmt.Errorf("apply made a %T of a %s", merged, k.Kind))
		}
		return obj, nil
	}
	for range generateTries {
		u := &update{registry: r, kind: k, namespace: namespace, name: name, change: merge, options: opts, applied: true}
		res, err = r.update(ctx, u, sub)
		if sub != "" || !apierrors.IsNotFound(err) {
			return res, false, err
		}
		res, err = r.applyNew(ctx, k, namespace, wanted, merge, opts)
		if !apierrors.IsAlreadyExists(err) {
			return res, err == nil, err
		}
	}
	return Result{}, false, busy(k, name)
}

// applyNew creates the object that an apply did not find.
func (r *Registry) applyNew(ctx context.Context, k *Kind, namespace string, wanted *unstructured.Unstructured, merge func(Object) (Object, error), opts WriteOptions) (Result, error) {
	if wanted.GetUID() != "" || wanted.GetResourceVersion() != "" {
		return Result{}, apierrors.NewNotFound(k.GroupResource(), wanted.GetName())
	}
	empty := k.New()
	empty.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	obj, err := merge(empty)
	if err != nil {
		return Result{}, err
	}
	if err := r.prepareNew(k, namespace, obj); err != nil {
		return Result{}, err
	}
	return r.create(ctx, k, obj, opts, true)
}

// readApply decodes the patch and holds it to its address.
func (r *Registry) readApply(k *Kind, namespace, name string, patch []byte) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	unmarshal := json.Unmarshal // of most clients' patches: it costs a tenth
	if !json.Valid(patch) {
		unmarshal = func(data []byte, into any) error { return yaml.Unmarshal(data, into) }
	}
	if err := unmarshal(patch, &u.Object); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	if got := u.GroupVersionKind(); got != k.GroupVersionKind {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the patch is of %q, kind %q; expected %q, kind %q",
			got.GroupVersion(), got.Kind, k.GroupVersion(), k.Kind))
	}
	if got := u.GetName(); got != "" && got != name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", got, name))
	}
	if got := u.GetNamespace(); got != "" && got != namespace {
		return nil, apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	u.SetName(name)
	if k.Namespaced {
		u.SetNamespace(namespace)
	}
	if u.GetManagedFields() != nil {
		return nil, apierrors.NewBadRequest("metadata.managedFields must be nil")
	}
	// What the kind's type cannot hold must not reach the field manager.
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.DeepCopy().Object, k.New()); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	return u, nil
}

func applyError(k *Kind, name string, err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		if s := status.Status(); s.Reason == metav1.StatusReasonConflict {
			e := &apierrors.StatusError{ErrStatus: s}
			if e.ErrStatus.Details == nil {
				e.ErrStatus.Details = &metav1.StatusDetails{}
			}
			e.ErrStatus.Details.Name, e.ErrStatus.Details.Group, e.ErrStatus.Details.Kind = name, k.Group, k.Plural
			return e
		}
		return err
	}
	return apierrors.NewBadRequest(fmt.Sprintf("cannot apply to %s %q: %v", k.Kind, name, err))
}
