package scheduler

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// term is a term of a pod's affinity or anti-affinity to other pods, compiled.
// matchLabelKeys are in the selector already: admission put them there.
type term struct {
	key               string // of the label that makes a topology
	namespaces        []string
	namespaceSelector labels.Selector // nil: no namespaces beside those
	pods              labels.Selector
	weight            int // of a preferred one
}

// terms are all those of a pod.
type terms struct{ affinity, antiAffinity, preferred, preferredAnti []term }

func termsOf(p *corev1.Pod) terms {
	var t terms
	if p.Spec.Affinity == nil {
		return t
	}
	if a := p.Spec.Affinity.PodAffinity; a != nil {
		t.affinity = required(p, a.RequiredDuringSchedulingIgnoredDuringExecution)
		t.preferred = preferred(p, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := p.Spec.Affinity.PodAntiAffinity; a != nil {
		t.antiAffinity = required(p, a.RequiredDuringSchedulingIgnoredDuringExecution)
		t.preferredAnti = preferred(p, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return t
}

func required(p *corev1.Pod, list []corev1.PodAffinityTerm) []term {
	var all []term
	for i := range list {
		all = append(all, compile(p, &list[i]))
	}
	return all
}

func preferred(p *corev1.Pod, list []corev1.WeightedPodAffinityTerm) []term {
	var all []term
	for i := range list {
		t := compile(p, &list[i].PodAffinityTerm)
		t.weight = int(list[i].Weight)
		all = append(all, t)
	}
	return all
}

// compile follows Kubernetes: no namespaces and no selector of them mean the
// pod's own, and a selector that is missing selects nothing.
func compile(p *corev1.Pod, t *corev1.PodAffinityTerm) term {
	c := term{key: t.TopologyKey, namespaces: t.Namespaces, pods: selectorOf(t.LabelSelector)}
	switch {
	case t.NamespaceSelector != nil:
		c.namespaceSelector = selectorOf(t.NamespaceSelector)
	case len(t.Namespaces) == 0:
		c.namespaces = []string{p.Namespace}
	}
	return c
}

// selectorOf is s compiled; what is missing or broken selects nothing.
func selectorOf(s *metav1.LabelSelector) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// matches reports whether t selects q.
func (t *term) matches(q *Pod, namespaceLabels map[string]labels.Set) bool {
	return t.pods.Matches(labels.Set(q.Labels)) &&
		(slices.Contains(t.namespaces, q.Namespace) || t.namespaceSelector != nil && t.namespaceSelector.Matches(namespaceLabels[q.Namespace]))
}

func matchesAll(list []term, q *Pod, namespaceLabels map[string]labels.Set) bool {
	for i := range list {
		if !list[i].matches(q, namespaceLabels) {
			return false
		}
	}
	return true
}

// meant calls f for all the placed pods, by kin, that one of the terms could mean.
func (s *Snapshot) meant(f func(k *kin), lists ...[]term) {
	var namespaces []string
	for _, list := range lists {
		for i := range list {
			if list[i].namespaceSelector != nil {
				for _, k := range s.kins.all {
					f(k)
				}
				return
			}
			namespaces = append(namespaces, list[i].namespaces...)
		}
	}
	slices.Sort(namespaces)
	for _, namespace := range slices.Compact(namespaces) {
		for k := range s.kins.byNamespace[namespace] {
			f(k)
		}
	}
}
