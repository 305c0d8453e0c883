package admission

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// DefaultNamespace sets the label by which selectors find a namespace by name.
func DefaultNamespace(ns *corev1.Namespace) {
	if ns.Name == "" {
		return
	}
	if ns.Labels == nil {
		ns.Labels = make(map[string]string, 1)
	}
	ns.Labels[corev1.LabelMetadataName] = ns.Name
}

// PrepareNamespace makes a new namespace active, and lets nothing remove it
// before its contents are gone: the finalizer "kubernetes" stands for them.
func PrepareNamespace(ns *corev1.Namespace) {
	ns.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
	for _, f := range ns.Spec.Finalizers {
		if f == corev1.FinalizerKubernetes {
			return
		}
	}
	ns.Spec.Finalizers = append(ns.Spec.Finalizers, corev1.FinalizerKubernetes)
}

// PrepareNamespaceUpdate keeps what only the namespace's own controller changes.
func PrepareNamespaceUpdate(ns, old *corev1.Namespace) {
	ns.Spec.Finalizers = old.Spec.Finalizers
	ns.Status = old.Status
}

// ValidateNamespace checks what namespaces have beside metadata.
func ValidateNamespace(ns *corev1.Namespace) field.ErrorList {
	var errs field.ErrorList
	for i, f := range ns.Spec.Finalizers {
		errs = append(errs, apivalidation.ValidateFinalizerName(string(f), field.NewPath("spec", "finalizers").Index(i))...)
	}
	return errs
}

// ValidateNamespaceStatus keeps the phase in step with the deletion.
func ValidateNamespaceStatus(ns, _ *corev1.Namespace) field.ErrorList {
	var errs field.ErrorList
	want := corev1.NamespaceActive
	if ns.DeletionTimestamp != nil {
		want = corev1.NamespaceTerminating
	}
	if ns.Status.Phase != want {
		errs = append(errs, field.Invalid(field.NewPath("status", "phase"), ns.Status.Phase, "must be "+string(want)))
	}
	return errs
}
