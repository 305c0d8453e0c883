package admission

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Kubernetes' limits on the new-style fields of events.
const (
	maxEventReason = 128
	maxEventAction = 128
	maxEventNote   = 1024
)

// DefaultEvent sets the type.
func DefaultEvent(e *corev1.Event) { setDefault(&e.Type, corev1.EventTypeNormal) }

// ValidateEvent checks that an event lies in the namespace of what it is
// about; those about cluster-scoped objects lie in "default".
func ValidateEvent(e *corev1.Event) field.ErrorList {
	var errs field.ErrorList
	about := e.InvolvedObject.Namespace
	path := field.NewPath("involvedObject", "namespace")
	switch {
	case about == "" && e.Namespace != metav1.NamespaceDefault && e.Namespace != metav1.NamespaceSystem:
		errs = append(errs, field.Invalid(path, about, "does not match event.namespace; an event about a cluster-scoped object belongs in namespace default"))
	case about != "" && about != e.Namespace:
		errs = append(errs, field.Invalid(path, about, "does not match event.namespace"))
	}
	if e.EventTime.IsZero() {
		return errs
	}
	return append(errs, validateNewEvent(e)...)
}

// validateNewEvent has the stricter rules of events.k8s.io/v1, which apply
// when eventTime is set.
func validateNewEvent(e *corev1.Event) field.ErrorList {
	var errs field.ErrorList
	if e.Type != corev1.EventTypeNormal && e.Type != corev1.EventTypeWarning {
		errs = append(errs, field.NotSupported(field.NewPath("type"), e.Type, []string{corev1.EventTypeNormal, corev1.EventTypeWarning}))
	}
	if e.ReportingController == "" {
		errs = append(errs, field.Required(field.NewPath("reportingController"), ""))
	} else {
		for _, msg := range validation.IsQualifiedName(e.ReportingController) {
			errs = append(errs, field.Invalid(field.NewPath("reportingController"), e.ReportingController, msg))
		}
	}
	if e.ReportingInstance == "" {
		errs = append(errs, field.Required(field.NewPath("reportingInstance"), ""))
	}
	for _, f := range []struct {
		name, value string
		max         int
	}{
		{"reason", e.Reason, maxEventReason}, {"action", e.Action, maxEventAction},
		{"reportingInstance", e.ReportingInstance, 128}, {"message", e.Message, maxEventNote},
	} {
		if len(f.value) > f.max {
			errs = append(errs, field.TooLong(field.NewPath(f.name), "", f.max))
		}
	}
	return errs
}

// ValidateEventUpdate keeps an event about what it was about.
func ValidateEventUpdate(e, old *corev1.Event) field.ErrorList {
	var errs field.ErrorList
	if old.EventTime.IsZero() {
		return errs
	}
	errs = append(errs, sameOrInvalid(e.InvolvedObject, old.InvolvedObject, field.NewPath("involvedObject"))...)
	errs = append(errs, sameOrInvalid(e.Reason, old.Reason, field.NewPath("reason"))...)
	errs = append(errs, sameOrInvalid(e.Message, old.Message, field.NewPath("message"))...)
	errs = append(errs, sameOrInvalid(e.Type, old.Type, field.NewPath("type"))...)
	return append(errs, sameOrInvalid(e.ReportingController, old.ReportingController, field.NewPath("reportingController"))...)
}
