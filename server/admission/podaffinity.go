package admission

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateAffinity(a *corev1.Affinity, path *field.Path) field.ErrorList {
	if a == nil {
		return nil
	}
	errs := validateNodeAffinity(a.NodeAffinity, path.Child("nodeAffinity"))
	if p := a.PodAffinity; p != nil {
		errs = append(errs, validatePodTerms(p.RequiredDuringSchedulingIgnoredDuringExecution,
			p.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("podAffinity"))...)
	}
	if p := a.PodAntiAffinity; p != nil {
		errs = append(errs, validatePodTerms(p.RequiredDuringSchedulingIgnoredDuringExecution,
			p.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("podAntiAffinity"))...)
	}
	return errs
}

const (
	requiredTerms  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferredTerms = "preferredDuringSchedulingIgnoredDuringExecution"
)

func validateNodeAffinity(a *corev1.NodeAffinity, path *field.Path) field.ErrorList {
	if a == nil {
		return nil
	}
	var errs field.ErrorList
	if r := a.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
		terms := path.Child(requiredTerms, "nodeSelectorTerms")
		if len(r.NodeSelectorTerms) == 0 {
			errs = append(errs, field.Required(terms, "must have at least one node selector term"))
		}
		for i := range r.NodeSelectorTerms {
			errs = append(errs, validateNodeTerm(&r.NodeSelectorTerms[i], terms.Index(i))...)
		}
	}
	for i := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		t, p := &a.PreferredDuringSchedulingIgnoredDuringExecution[i], path.Child(preferredTerms).Index(i)
		errs = append(errs, validateWeight(t.Weight, p)...)
		errs = append(errs, validateNodeTerm(&t.Preference, p.Child("preference"))...)
	}
	return errs
}

func validateWeight(weight int32, path *field.Path) field.ErrorList {
	if weight < 1 || weight > 100 {
		return field.ErrorList{field.Invalid(path.Child("weight"), weight, "must be in the range 1-100")}
	}
	return nil
}

func validateNodeTerm(t *corev1.NodeSelectorTerm, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range t.MatchExpressions {
		errs = append(errs, validateNodeExpression(&t.MatchExpressions[i], path.Child("matchExpressions").Index(i))...)
	}
	for i := range t.MatchFields {
		errs = append(errs, validateNodeField(&t.MatchFields[i], path.Child("matchFields").Index(i))...)
	}
	return errs
}

func validateNodeExpression(r *corev1.NodeSelectorRequirement, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	values := path.Child("values")
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(r.Values) == 0 {
			errs = append(errs, field.Required(values, "must be specified when `operator` is 'In' or 'NotIn'"))
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			errs = append(errs, field.Forbidden(values, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if len(r.Values) != 1 {
			errs = append(errs, field.Required(values, "must be specified single value when `operator` is 'Lt' or 'Gt'"))
		}
	default:
		errs = append(errs, field.Invalid(path.Child("operator"), r.Operator, "not a valid selector operator"))
	}
	for i, v := range r.Values {
		for _, msg := range validation.IsValidLabelValue(v) {
			errs = append(errs, field.Invalid(values.Index(i), v, msg))
		}
	}
	return append(errs, metav1validation.ValidateLabelName(r.Key, path.Child("key"))...)
}

func validateNodeField(r *corev1.NodeSelectorRequirement, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if r.Operator != corev1.NodeSelectorOpIn && r.Operator != corev1.NodeSelectorOpNotIn {
		errs = append(errs, field.Invalid(path.Child("operator"), r.Operator, "not a valid selector operator"))
	}
	if len(r.Values) != 1 {
		errs = append(errs, field.Required(path.Child("values"), "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"))
	}
	if r.Key != metav1.ObjectNameField {
		return append(errs, field.Invalid(path.Child("key"), r.Key, "not a valid field selector key: only metadata.name is one"))
	}
	for i, v := range r.Values {
		for _, msg := range apivalidation.NameIsDNSSubdomain(v, false) {
			errs = append(errs, field.Invalid(path.Child("values").Index(i), v, msg))
		}
	}
	return errs
}

func validatePodTerms(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range required {
		errs = append(errs, validatePodTerm(&required[i], path.Child(requiredTerms).Index(i))...)
	}
	for i := range preferred {
		p := path.Child(preferredTerms).Index(i)
		errs = append(errs, validateWeight(preferred[i].Weight, p)...)
		errs = append(errs, validatePodTerm(&preferred[i].PodAffinityTerm, p.Child("podAffinityTerm"))...)
	}
	return errs
}

func validatePodTerm(t *corev1.PodAffinityTerm, path *field.Path) field.ErrorList {
	errs := validateSelector(t.LabelSelector, path.Child("labelSelector"))
	errs = append(errs, validateSelector(t.NamespaceSelector, path.Child("namespaceSelector"))...)
	for i, name := range t.Namespaces {
		for _, msg := range apivalidation.ValidateNamespaceName(name, false) {
			errs = append(errs, field.Invalid(path.Child("namespaces").Index(i), name, msg))
		}
	}
	errs = append(errs, validateTopologyKey(t.TopologyKey, path)...)
	errs = append(errs, validateLabelKeys(t.MatchLabelKeys, t.LabelSelector, "matchLabelKeys", path)...)
	errs = append(errs, validateLabelKeys(t.MismatchLabelKeys, t.LabelSelector, "mismatchLabelKeys", path)...)
	for i, key := range t.MatchLabelKeys {
		for _, other := range t.MismatchLabelKeys {
			if key == other {
				errs = append(errs, field.Invalid(path.Child("matchLabelKeys").Index(i), key, "exists in both matchLabelKeys and mismatchLabelKeys"))
			}
		}
	}
	return errs
}

func validateSelector(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, path)
}

func validateTopologyKey(key string, path *field.Path) field.ErrorList {
	if key == "" {
		return field.ErrorList{field.Required(path.Child("topologyKey"), "can not be empty")}
	}
	return metav1validation.ValidateLabelName(key, path.Child("topologyKey"))
}

// validateLabelKeys checks keys whose values are the pod's own. What they ask
// of the selector was added to it when the pod was created (mergeLabelKeys).
func validateLabelKeys(keys []string, selector *metav1.LabelSelector, name string, path *field.Path) field.ErrorList {
	if len(keys) == 0 {
		return nil
	}
	if selector == nil {
		return field.ErrorList{field.Forbidden(path.Child(name), "must not be specified when labelSelector is not set")}
	}
	var errs field.ErrorList
	times := map[string]int{}
	for key := range selector.MatchLabels {
		times[key]++
	}
	for _, e := range selector.MatchExpressions {
		times[e.Key]++
	}
	for i, key := range keys {
		p := path.Child(name).Index(i)
		errs = append(errs, metav1validation.ValidateLabelName(key, p)...)
		if times[key] > 1 {
			errs = append(errs, field.Invalid(p, key, fmt.Sprintf("exists in both %s and labelSelector", name)))
		}
	}
	return errs
}
