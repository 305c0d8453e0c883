package admission

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// DefaultNode keeps podCIDR and podCIDRs in step, as Kubernetes does, and
// makes all that the node has allocatable when it does not say otherwise.
func DefaultNode(n *corev1.Node) {
	if n.Spec.PodCIDR != "" && len(n.Spec.PodCIDRs) == 0 {
		n.Spec.PodCIDRs = []string{n.Spec.PodCIDR}
	}
	if n.Spec.PodCIDR == "" && len(n.Spec.PodCIDRs) > 0 {
		n.Spec.PodCIDR = n.Spec.PodCIDRs[0]
	}
	if n.Status.Allocatable == nil && n.Status.Capacity != nil {
		n.Status.Allocatable = n.Status.Capacity.DeepCopy()
	}
}

// PrepareNode keeps pods away from a new node until it has said that it is
// ready, as Kubernetes does.
func PrepareNode(n *corev1.Node) {
	taint := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	for i := range n.Spec.Taints {
		if n.Spec.Taints[i].MatchTaint(&taint) {
			return
		}
	}
	n.Spec.Taints = append(n.Spec.Taints, taint)
}

// PrepareNodeUpdate keeps the status, which its own subresource changes.
func PrepareNodeUpdate(n, old *corev1.Node) { n.Status = old.Status }

// ValidateNode checks address ranges, taints and quantities.
func ValidateNode(n *corev1.Node) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateTaints(n.Spec.Taints, spec.Child("taints"))
	cidrs := spec.Child("podCIDRs")
	for i, cidr := range n.Spec.PodCIDRs {
		errs = append(errs, validation.IsValidCIDR(cidrs.Index(i), cidr)...)
	}
	if len(n.Spec.PodCIDRs) > 0 && n.Spec.PodCIDRs[0] != n.Spec.PodCIDR {
		errs = append(errs, field.Invalid(cidrs.Index(0), n.Spec.PodCIDRs[0], "must be equal to podCIDR"))
	}
	if len(n.Spec.PodCIDRs) > 2 {
		errs = append(errs, field.TooMany(cidrs, len(n.Spec.PodCIDRs), 2))
	}
	//lint:ignore SA1019 a client may still send it
	if n.Spec.ConfigSource != nil {
		errs = append(errs, field.Forbidden(spec.Child("configSource"), "configSource may not be set"))
	}
	return append(errs, validateNodeResources(n)...)
}

// ValidateNodeUpdate holds what is fixed once it is set.
func ValidateNodeUpdate(n, old *corev1.Node) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if old.Spec.PodCIDR != "" && n.Spec.PodCIDR != old.Spec.PodCIDR {
		errs = append(errs, field.Forbidden(spec.Child("podCIDR"), "node updates may not change podCIDR except from \"\" to valid"))
	}
	if old.Spec.ProviderID != "" && n.Spec.ProviderID != old.Spec.ProviderID {
		errs = append(errs, field.Forbidden(spec.Child("providerID"), "node updates may not change providerID except from \"\" to valid"))
	}
	return errs
}

// ValidateNodeStatus checks what the node reports of itself.
func ValidateNodeStatus(n, _ *corev1.Node) field.ErrorList {
	errs := validateNodeResources(n)
	seen := map[corev1.NodeAddress]bool{}
	for i, a := range n.Status.Addresses {
		if path := field.NewPath("status", "addresses").Index(i); seen[a] {
			errs = append(errs, field.Duplicate(path, a))
		}
		seen[a] = true
	}
	return errs
}

func validateNodeResources(n *corev1.Node) field.ErrorList {
	status := field.NewPath("status")
	errs := validateQuantities(n.Status.Capacity, status.Child("capacity"))
	return append(errs, validateQuantities(n.Status.Allocatable, status.Child("allocatable"))...)
}

func validateQuantities(list corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, q := range list {
		errs = append(errs, validateResourceName(string(name), path.Key(string(name)))...)
		errs = append(errs, nonNegative(q, path.Key(string(name)))...)
	}
	return errs
}

func nonNegative(q resource.Quantity, path *field.Path) field.ErrorList {
	if q.Sign() < 0 {
		return field.ErrorList{field.Invalid(path, q.String(), "must be greater than or equal to 0")}
	}
	return nil
}

func validateTaints(taints []corev1.Taint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, t := range taints {
		p := path.Index(i)
		errs = append(errs, metav1validation.ValidateLabelName(t.Key, p.Child("key"))...)
		for _, msg := range validation.IsValidLabelValue(t.Value) {
			errs = append(errs, field.Invalid(p.Child("value"), t.Value, msg))
		}
		errs = append(errs, validateTaintEffect(t.Effect, false, p.Child("effect"))...)
		id := fmt.Sprintf("%s:%s", t.Key, t.Effect)
		if seen[id] {
			errs = append(errs, field.Duplicate(p, id+": taints must be unique by key and effect pair"))
		}
		seen[id] = true
	}
	return errs
}

func validateTaintEffect(e corev1.TaintEffect, mayBeEmpty bool, path *field.Path) field.ErrorList {
	switch e {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		return nil
	case "":
		if mayBeEmpty {
			return nil
		}
		return field.ErrorList{field.Required(path, "")}
	}
	return field.ErrorList{field.NotSupported(path, e, []corev1.TaintEffect{
		corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute})}
}
