package admission

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateLease checks names and that the numbers make sense.
func ValidateLease(l *coordinationv1.Lease) field.ErrorList {
	errs := validateNamespacedMeta(&l.ObjectMeta)
	spec := field.NewPath("spec")
	if d := l.Spec.LeaseDurationSeconds; d != nil && *d <= 0 {
		errs = append(errs, field.Invalid(spec.Child("leaseDurationSeconds"), *d, "must be greater than 0"))
	}
	if n := l.Spec.LeaseTransitions; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(spec.Child("leaseTransitions"), *n, "must be greater than or equal to 0"))
	}
	if l.Spec.PreferredHolder != nil && *l.Spec.PreferredHolder != "" && (l.Spec.Strategy == nil || *l.Spec.Strategy == "") {
		errs = append(errs, field.Forbidden(spec.Child("preferredHolder"), "may only be specified if `strategy` is defined"))
	}
	return errs
}

// ValidateLeaseUpdate checks a change; anyone who may write it may take it over.
func ValidateLeaseUpdate(l, old *coordinationv1.Lease) field.ErrorList {
	return ValidateMetaUpdate(&l.ObjectMeta, &old.ObjectMeta)
}
