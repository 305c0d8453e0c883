package admission

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateSpread(constraints []corev1.TopologySpreadConstraint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	type pair struct {
		key  string
		kind corev1.UnsatisfiableConstraintAction
	}
	seen := map[pair]bool{}
	for i := range constraints {
		c, p := &constraints[i], path.Index(i)
		if c.MaxSkew <= 0 {
			errs = append(errs, field.Invalid(p.Child("maxSkew"), c.MaxSkew, "must be greater than zero"))
		}
		errs = append(errs, validateTopologyKey(c.TopologyKey, p)...)
		errs = append(errs, oneOf(c.WhenUnsatisfiable, p.Child("whenUnsatisfiable"), corev1.DoNotSchedule, corev1.ScheduleAnyway)...)
		if id := (pair{c.TopologyKey, c.WhenUnsatisfiable}); seen[id] {
			errs = append(errs, field.Duplicate(p.Child("{topologyKey, whenUnsatisfiable}"), c.TopologyKey+", "+string(c.WhenUnsatisfiable)))
		} else {
			seen[id] = true
		}
		errs = append(errs, validateMinDomains(c, p.Child("minDomains"))...)
		errs = append(errs, validateInclusion(c.NodeAffinityPolicy, p.Child("nodeAffinityPolicy"))...)
		errs = append(errs, validateInclusion(c.NodeTaintsPolicy, p.Child("nodeTaintsPolicy"))...)
		errs = append(errs, validateSelector(c.LabelSelector, p.Child("labelSelector"))...)
		errs = append(errs, validateLabelKeys(c.MatchLabelKeys, c.LabelSelector, "matchLabelKeys", p)...)
	}
	return errs
}

func validateMinDomains(c *corev1.TopologySpreadConstraint, path *field.Path) field.ErrorList {
	switch {
	case c.MinDomains == nil:
		return nil
	case *c.MinDomains <= 0:
		return field.ErrorList{field.Invalid(path, *c.MinDomains, "must be greater than zero")}
	case c.WhenUnsatisfiable != corev1.DoNotSchedule:
		return field.ErrorList{field.Invalid(path, *c.MinDomains, "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not "+string(c.WhenUnsatisfiable))}
	}
	return nil
}

func validateInclusion(policy *corev1.NodeInclusionPolicy, path *field.Path) field.ErrorList {
	if policy == nil {
		return nil
	}
	return oneOf(*policy, path, corev1.NodeInclusionPolicyIgnore, corev1.NodeInclusionPolicyHonor)
}
