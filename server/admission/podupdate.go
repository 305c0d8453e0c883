package admission

import (
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidatePodUpdate holds all of a pod's spec but the images, the active
// deadline (which may be set or shortened), tolerations (to which more may be
// added) and scheduling gates (which may be removed; while there are some, the
// choice of nodes may be narrowed).
func ValidatePodUpdate(p, old *corev1.Pod) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if len(p.Spec.Containers) != len(old.Spec.Containers) {
		return append(errs, field.Forbidden(spec.Child("containers"), "pod updates may not add or remove containers"))
	}
	if len(p.Spec.InitContainers) != len(old.Spec.InitContainers) {
		return append(errs, field.Forbidden(spec.Child("initContainers"), "pod updates may not add or remove containers"))
	}
	errs = append(errs, validateDeadlineUpdate(p.Spec.ActiveDeadlineSeconds, old.Spec.ActiveDeadlineSeconds, spec.Child("activeDeadlineSeconds"))...)
	errs = append(errs, validateTolerationsUpdate(p.Spec.Tolerations, old.Spec.Tolerations, spec.Child("tolerations"))...)
	errs = append(errs, validateGatesUpdate(p.Spec.SchedulingGates, old.Spec.SchedulingGates, spec.Child("schedulingGates"))...)
	if changed := fixedFieldsChanged(&p.Spec, &old.Spec); len(changed) > 0 {
		errs = append(errs, field.Forbidden(spec, fmt.Sprintf("pod updates may not change fields other than "+
			"`spec.containers[*].image`, `spec.initContainers[*].image`, `spec.activeDeadlineSeconds`, "+
			"`spec.tolerations` (only additions to existing tolerations) "+
			"and `spec.schedulingGates` (only removals, and while there are some a narrower node selector and affinity); "+
			"changed: %s. Delete the pod and create it again to change these", strings.Join(changed, ", "))))
	}
	return errs
}

// fixedFieldsChanged names the fields of the spec that changed and must not.
func fixedFieldsChanged(now, was *corev1.PodSpec) []string {
	allowed := now.DeepCopy()
	for i := range allowed.Containers {
		allowed.Containers[i].Image = was.Containers[i].Image
	}
	for i := range allowed.InitContainers {
		allowed.InitContainers[i].Image = was.InitContainers[i].Image
	}
	allowed.ActiveDeadlineSeconds = was.ActiveDeadlineSeconds
	allowed.Tolerations = was.Tolerations
	allowed.SchedulingGates = was.SchedulingGates
	allowGated(allowed, was)
	var changed []string
	a, b := reflect.ValueOf(allowed).Elem(), reflect.ValueOf(was).Elem()
	for i := range a.NumField() {
		if !equality.Semantic.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			name, _ := jsonName(a.Type().Field(i))
			changed = append(changed, name)
		}
	}
	return changed
}

func validateDeadlineUpdate(now, was *int64, path *field.Path) field.ErrorList {
	switch {
	case was == nil:
		return nil
	case now == nil:
		return field.ErrorList{field.Invalid(path, nil, "must not update from a positive integer to nil value")}
	case *now > *was:
		return field.ErrorList{field.Invalid(path, *now, "must be less than or equal to previous value")}
	}
	return nil
}

// validateTolerationsUpdate lets tolerations be added, and the seconds of
// those that are there be changed.
func validateTolerationsUpdate(now, was []corev1.Toleration, path *field.Path) field.ErrorList {
	for _, old := range was {
		old.TolerationSeconds = nil
		kept := false
		for _, t := range now {
			t.TolerationSeconds = nil
			kept = kept || t == old
		}
		if !kept {
			return field.ErrorList{field.Forbidden(path, "existing toleration can not be modified except its tolerationSeconds")}
		}
	}
	return nil
}

// ValidatePodStatus checks a report of a pod's state. Phases only move forward.
func ValidatePodStatus(p, old *corev1.Pod) field.ErrorList {
	var errs field.ErrorList
	status := field.NewPath("status")
	was, now := old.Status.Phase, p.Status.Phase
	if (was == corev1.PodSucceeded || was == corev1.PodFailed) && now != was {
		errs = append(errs, field.Forbidden(status.Child("phase"), fmt.Sprintf("a pod that has %s may not become %s", strings.ToLower(string(was)), now)))
	}
	for i, c := range p.Status.Conditions {
		if c.Type == "" {
			errs = append(errs, field.Required(status.Child("conditions").Index(i).Child("type"), ""))
		}
	}
	return errs
}

// ValidateBinding checks that old may be given the node that p has now.
func ValidateBinding(p, old *corev1.Pod) field.ErrorList {
	target := field.NewPath("target", "name")
	switch {
	case p.Spec.NodeName == "":
		return field.ErrorList{field.Required(target, "")}
	case old.DeletionTimestamp != nil:
		return field.ErrorList{field.Forbidden(target, fmt.Sprintf("pod %s is being deleted, cannot be assigned to a node", old.Name))}
	case len(old.Spec.SchedulingGates) > 0:
		return field.ErrorList{field.Forbidden(target, fmt.Sprintf("pod %s has non-empty .spec.schedulingGates, cannot be assigned to a node; remove the gates first", old.Name))}
	case old.Spec.NodeName != "" && old.Spec.NodeName != p.Spec.NodeName:
		return field.ErrorList{field.Forbidden(target, fmt.Sprintf("pod %s is already assigned to node %q", old.Name, old.Spec.NodeName))}
	}
	return nil
}
