package state

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// References are the names of the objects of its namespace that a pod uses.
type References struct{ ConfigMaps, Secrets map[string]bool }

// ReferencesOf returns what a pod's volumes and environments refer to.
func ReferencesOf(pod *corev1.Pod) References {
	refs := References{ConfigMaps: map[string]bool{}, Secrets: map[string]bool{}}
	for _, v := range pod.Spec.Volumes {
		if v.ConfigMap != nil {
			refs.ConfigMaps[v.ConfigMap.Name] = true
		}
		if v.Secret != nil {
			refs.Secrets[v.Secret.SecretName] = true
		}
		if v.Projected != nil {
			refs.projected(v.Projected.Sources)
		}
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		refs.container(c)
	}
	return refs
}

func (r References) projected(sources []corev1.VolumeProjection) {
	for _, source := range sources {
		if source.ConfigMap != nil {
			r.ConfigMaps[source.ConfigMap.Name] = true
		}
		if source.Secret != nil {
			r.Secrets[source.Secret.Name] = true
		}
	}
}

func (r References) container(c corev1.Container) {
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef != nil {
			r.ConfigMaps[from.ConfigMapRef.Name] = true
		}
		if from.SecretRef != nil {
			r.Secrets[from.SecretRef.Name] = true
		}
	}
	for _, env := range c.Env {
		if env.ValueFrom == nil {
			continue
		}
		if ref := env.ValueFrom.ConfigMapKeyRef; ref != nil {
			r.ConfigMaps[ref.Name] = true
		}
		if ref := env.ValueFrom.SecretKeyRef; ref != nil {
			r.Secrets[ref.Name] = true
		}
	}
}

// KeepConfigMap records an object with each pod that uses it.
func (r *Record) KeepConfigMap(object *corev1.ConfigMap) error {
	kept := object.DeepCopy()
	trimMeta(&kept.ObjectMeta)
	return r.keepObject(kept.Namespace, func(p *Pod, refs References) {
		if refs.ConfigMaps[kept.Name] {
			p.ConfigMaps = put(p.ConfigMaps, kept)
		}
	})
}

// KeepSecret is KeepConfigMap for Secrets.
func (r *Record) KeepSecret(object *corev1.Secret) error {
	kept := object.DeepCopy()
	trimMeta(&kept.ObjectMeta)
	return r.keepObject(kept.Namespace, func(p *Pod, refs References) {
		if refs.Secrets[kept.Name] {
			p.Secrets = put(p.Secrets, kept)
		}
	})
}

// keepObject lets add change a copy of each pod's record of a namespace.
func (r *Record) keepObject(namespace string, add func(*Pod, References)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, old := range r.pods {
		if old.Pod.Namespace != namespace {
			continue
		}
		next := *old
		add(&next, ReferencesOf(old.Pod))
		if err := r.write(&next); err != nil {
			return err
		}
	}
	return nil
}

// ConfigMap returns the record's copy, or nil. It must not be changed.
func (r *Record) ConfigMap(namespace, name string) *corev1.ConfigMap {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pods {
		if found := find(p.ConfigMaps, namespace, name); found != nil {
			return found
		}
	}
	return nil
}

// Secret returns the record's copy, or nil. It must not be changed.
func (r *Record) Secret(namespace, name string) *corev1.Secret {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pods {
		if found := find(p.Secrets, namespace, name); found != nil {
			return found
		}
	}
	return nil
}

func trimMeta(meta *metav1.ObjectMeta) {
	meta.ManagedFields, meta.ResourceVersion = nil, ""
	delete(meta.Annotations, corev1.LastAppliedConfigAnnotation)
}

func find[T metav1.Object](all []T, namespace, name string) (none T) {
	for _, object := range all {
		if object.GetNamespace() == namespace && object.GetName() == name {
			return object
		}
	}
	return none
}

// put returns a new list, sorted by name, with object in the place of its namesake.
func put[T metav1.Object](all []T, object T) []T {
	next := slices.DeleteFunc(slices.Clone(all), func(o T) bool { return o.GetName() == object.GetName() })
	next = append(next, object)
	slices.SortFunc(next, func(a, b T) int {
		if a.GetName() < b.GetName() {
			return -1
		}
		return 1
	})
	return next
}
