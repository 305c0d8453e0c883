package objects

import (
	corev1 "k8s.io/api/core/v1"

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
