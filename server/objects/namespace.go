package objects

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"bramble.dev/bramble/server/store"
)

// namespaceCheck says whether a new object may lie in namespace, and returns
// the condition under which that stays so until the object is there: the
// namespace must not have changed. A namespace that is being deleted can so
// never get new objects.
func (r *Registry) namespaceCheck(k *Kind, namespace, name string) ([]store.Change, error) {
	if !k.Namespaced || r.spaces == nil {
		return nil, nil
	}
	key := r.spaces.key("", namespace)
	e, ok := r.store.Get(key)
	switch {
	case !ok && r.config.NamespaceOptional(k, namespace):
		return nil, nil
	case !ok:
		return nil, namespaceMissing(namespace)
	case traitsOfEntry(r.spaces, e).deleting:
		return nil, namespaceEnding(k, namespace, name)
	}
	return []store.Change{{Key: key, Rev: e.Rev, Check: true}}, nil
}

// endNamespace makes the phase of a namespace follow its deletion.
func endNamespace(obj Object) {
	if ns, ok := obj.(*corev1.Namespace); ok && ns.DeletionTimestamp != nil {
		ns.Status.Phase = corev1.NamespaceTerminating
	}
}

// finalized reports whether nothing waits any more to be done before obj may
// be removed.
func finalized(obj Object) bool {
	if ns, ok := obj.(*corev1.Namespace); ok && len(ns.Spec.Finalizers) > 0 {
		return false
	}
	return len(obj.GetFinalizers()) == 0
}

// ended reports whether an object that was marked for deletion has come to
// its end.
func ended(obj Object) bool {
	grace := obj.GetDeletionGracePeriodSeconds()
	return obj.GetDeletionTimestamp() != nil && (grace == nil || *grace == 0) && finalized(obj)
}

// EndingNamespaces calls each with the name of every namespace that is being
// deleted, those that are so already first, until ctx ends. A name may come
// more than once. It returns ctx's error, or why it cannot go on.
func (r *Registry) EndingNamespaces(ctx context.Context, each func(name string)) error {
	if r.spaces == nil {
		return errors.New("there are no namespaces in the table of kinds")
	}
	for {
		w, err := r.Watch(r.spaces, "", WatchOptions{})
		if err != nil {
			return err
		}
		err = w.Each(ctx, func(e WatchEvent) error {
			var ns metav1.PartialObjectMetadata
			if err := json.Unmarshal(e.Body.Bytes(), &ns); err == nil && e.Type != watch.Deleted && ns.DeletionTimestamp != nil {
				each(ns.Name)
			}
			return nil
		})
		switch {
		case err == nil:
			return ctx.Err()
		case !apierrors.IsResourceExpired(err):
			return err
		}
	}
}

// EmptyNamespace asks for the deletion of every object in a namespace that is
// being deleted, each as gracefully as its kind is, and returns how many are
// still there afterwards. It touches nothing, and ending is false, when the
// namespace is gone or is no longer the one that was deleted.
func (r *Registry) EmptyNamespace(ctx context.Context, namespace string) (left int, ending bool, err error) {
	e, ok := r.store.Get(r.spaces.key("", namespace))
	if !ok || !traitsOfEntry(r.spaces, e).deleting {
		return 0, false, nil
	}
	left, err = r.deleteAll(ctx, namespace)
	return left, true, err
}

func (r *Registry) deleteAll(ctx context.Context, namespace string) (left int, err error) {
	for _, k := range r.kinds {
		if !k.Namespaced || !k.IsStored() {
			continue
		}
		entries, _, err := r.store.List(k.Resource(), namespace, 0)
		if err != nil {
			return 0, r.readError(0, err)
		}
		for _, e := range entries {
			_, deleted, err := r.Delete(ctx, k, namespace, e.Name, metav1.DeleteOptions{})
			switch {
			case apierrors.IsNotFound(err) || deleted:
			case err != nil:
				return 0, err
			default:
				left++
			}
		}
	}
	return left, nil
}

// FinalizeNamespace takes the finalizer "kubernetes" from a namespace that is
// being deleted and was found empty: it goes, unless others hold it. One that
// does not exist is no error.
func (r *Registry) FinalizeNamespace(ctx context.Context, name string) error {
	for range conflictTries {
		err := r.tryFinalize(ctx, name)
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return busy(r.spaces, name)
}

func (r *Registry) tryFinalize(ctx context.Context, name string) error {
	entry, ok := r.store.Get(r.spaces.key("", name))
	if !ok {
		return nil
	}
	obj, err := r.spaces.Decode(entry.Body.Bytes())
	if err != nil {
		return err
	}
	ns, ok := obj.(*corev1.Namespace)
	if !ok || ns.DeletionTimestamp == nil {
		return conflict(r.spaces, name, errors.New("it is not being deleted"))
	}
	ns.Spec.Finalizers = slices.DeleteFunc(ns.Spec.Finalizers, func(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes })
	e, err := encode(r.spaces, ns)
	if err != nil {
		return err
	}
	if ended(ns) {
		_, err = r.remove(ctx, r.spaces, ns, e, entry.Rev)
	} else {
		_, err = r.commit(ctx, r.spaces, ns, e, entry.Rev)
	}
	return err
}
