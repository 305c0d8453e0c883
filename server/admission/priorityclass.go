package admission

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Kubernetes' bounds of priorities.
const (
	maxUserPriority  = 1_000_000_000
	clusterCritical  = 2_000_000_000
	nodeCritical     = clusterCritical + 1000
	systemClassStart = "system-"
)

// SystemPriorityClasses are those that every cluster has.
func SystemPriorityClasses() []*schedulingv1.PriorityClass {
	class := func(name string, value int32, description string) *schedulingv1.PriorityClass {
		c := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, Description: description}
		DefaultPriorityClass(c)
		return c
	}
	return []*schedulingv1.PriorityClass{
		class("system-node-critical", nodeCritical, "For pods that must not be moved from their node."),
		class("system-cluster-critical", clusterCritical, "For pods that the cluster needs, but that may be moved to another node."),
	}
}

// DefaultPriorityClass lets pods of the class take the place of others.
func DefaultPriorityClass(c *schedulingv1.PriorityClass) {
	setDefaultPtr(&c.PreemptionPolicy, corev1.PreemptLowerPriority)
}

// PreparePriorityClass makes it the first of its generations.
func PreparePriorityClass(c *schedulingv1.PriorityClass) { c.Generation = 1 }

// ValidatePriorityClass keeps what is the system's: names that begin with
// "system-", and the highest values.
func ValidatePriorityClass(c *schedulingv1.PriorityClass) field.ErrorList {
	var errs field.ErrorList
	if strings.HasPrefix(c.Name, systemClassStart) {
		if why := notOfSystem(c); why != "" {
			errs = append(errs, field.Forbidden(field.NewPath("metadata", "name"),
				"priority class names with 'system-' prefix are reserved for system use only. error: "+why))
		}
	} else if c.Value > maxUserPriority {
		errs = append(errs, field.Forbidden(field.NewPath("value"),
			fmt.Sprintf("maximum allowed value of a user defined priority is %d", maxUserPriority)))
	}
	if c.PreemptionPolicy == nil {
		return append(errs, field.Required(field.NewPath("preemptionPolicy"), ""))
	}
	return append(errs, oneOf(*c.PreemptionPolicy, field.NewPath("preemptionPolicy"), corev1.PreemptLowerPriority, corev1.PreemptNever)...)
}

func notOfSystem(c *schedulingv1.PriorityClass) string {
	for _, known := range SystemPriorityClasses() {
		switch {
		case c.Name != known.Name:
		case c.Value != known.Value:
			return fmt.Sprintf("value of %s PriorityClass must be %d", c.Name, known.Value)
		case c.GlobalDefault:
			return fmt.Sprintf("globalDefault of %s PriorityClass must be false", c.Name)
		default:
			return ""
		}
	}
	return c.Name + " is not a known system priority class; choose another name"
}

// ValidatePriorityClassUpdate holds what pods have taken over.
func ValidatePriorityClassUpdate(c, old *schedulingv1.PriorityClass) field.ErrorList {
	var errs field.ErrorList
	if c.Value != old.Value {
		errs = append(errs, field.Forbidden(field.NewPath("value"), "may not be changed in an update; create another class instead"))
	}
	return append(errs, sameOrInvalid(c.PreemptionPolicy, old.PreemptionPolicy, field.NewPath("preemptionPolicy"))...)
}
