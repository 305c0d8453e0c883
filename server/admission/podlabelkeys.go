package admission

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mergeLabelKeys turns matchLabelKeys and mismatchLabelKeys of a new pod into
// requirements of the selectors beside them, by the pod's own labels, as
// Kubernetes does: the scheduler then has only selectors to look at. A key that
// the pod has no label of asks for nothing.
func mergeLabelKeys(p *corev1.Pod) {
	if a := p.Spec.Affinity; a != nil {
		if a.PodAffinity != nil {
			mergeTerms(p.Labels, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
		}
		if a.PodAntiAffinity != nil {
			mergeTerms(p.Labels, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
		}
	}
	for i := range p.Spec.TopologySpreadConstraints {
		c := &p.Spec.TopologySpreadConstraints[i]
		mergeKeys(p.Labels, c.LabelSelector, c.MatchLabelKeys, metav1.LabelSelectorOpIn)
	}
}

func mergeTerms(labels map[string]string, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
	merge := func(t *corev1.PodAffinityTerm) {
		mergeKeys(labels, t.LabelSelector, t.MatchLabelKeys, metav1.LabelSelectorOpIn)
		mergeKeys(labels, t.LabelSelector, t.MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
	}
	for i := range required {
		merge(&required[i])
	}
	for i := range preferred {
		merge(&preferred[i].PodAffinityTerm)
	}
}

func mergeKeys(labels map[string]string, selector *metav1.LabelSelector, keys []string, op metav1.LabelSelectorOperator) {
	if selector == nil {
		return // validation says so
	}
	for _, key := range keys {
		if value, has := labels[key]; has {
			selector.MatchExpressions = append(selector.MatchExpressions,
				metav1.LabelSelectorRequirement{Key: key, Operator: op, Values: []string{value}})
		}
	}
}
