package admission

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// setGated says in the status of a new pod that its gates keep it from a node.
func setGated(p *corev1.Pod) {
	if len(p.Spec.SchedulingGates) > 0 {
		SetPodCondition(&p.Status, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated,
			Message: "Scheduling is blocked due to non-empty scheduling gates", ObservedGeneration: p.Generation,
		}, p.CreationTimestamp)
	}
}

// validateGatesUpdate lets gates be removed, and nothing else.
func validateGatesUpdate(now, was []corev1.PodSchedulingGate, path *field.Path) field.ErrorList {
	for i, g := range now {
		if !slices.Contains(was, g) {
			return field.ErrorList{field.Forbidden(path.Index(i), "only deletion is allowed, but found new scheduling gate '"+g.Name+"'")}
		}
	}
	return nil
}

// allowGated makes of now, which is compared with was, what a change is that a
// pod with gates may have: fewer nodes to choose from, never others.
func allowGated(now, was *corev1.PodSpec) {
	if len(was.SchedulingGates) == 0 {
		return
	}
	narrower := true
	for key, value := range was.NodeSelector {
		got, has := now.NodeSelector[key]
		narrower = narrower && has && got == value
	}
	if narrower {
		now.NodeSelector = was.NodeSelector
	}
	if narrowerAffinity(nodeAffinityOf(now), nodeAffinityOf(was)) {
		setNodeAffinity(now, was)
	}
}

func nodeAffinityOf(s *corev1.PodSpec) *corev1.NodeAffinity {
	if s.Affinity == nil || s.Affinity.NodeAffinity == nil {
		return &corev1.NodeAffinity{}
	}
	return s.Affinity.NodeAffinity
}

// narrowerAffinity follows Kubernetes: preferences are free; requirements may
// be added where there were none, and to each term that is there.
func narrowerAffinity(now, was *corev1.NodeAffinity) bool {
	n, w := now.RequiredDuringSchedulingIgnoredDuringExecution, was.RequiredDuringSchedulingIgnoredDuringExecution
	switch {
	case w == nil:
		return true
	case n == nil || len(n.NodeSelectorTerms) != len(w.NodeSelectorTerms):
		return false
	}
	for i := range w.NodeSelectorTerms {
		if !hasAllOf(n.NodeSelectorTerms[i].MatchExpressions, w.NodeSelectorTerms[i].MatchExpressions) ||
			!hasAllOf(n.NodeSelectorTerms[i].MatchFields, w.NodeSelectorTerms[i].MatchFields) {
			return false
		}
		empty := len(w.NodeSelectorTerms[i].MatchExpressions)+len(w.NodeSelectorTerms[i].MatchFields) == 0
		if empty && !equality.Semantic.DeepEqual(n.NodeSelectorTerms[i], w.NodeSelectorTerms[i]) {
			return false // an empty term selects nothing: more in it would be wider
		}
	}
	return true
}

// hasAllOf reports whether now begins with all of was.
func hasAllOf(now, was []corev1.NodeSelectorRequirement) bool {
	return len(now) >= len(was) && equality.Semantic.DeepEqual(now[:len(was)], was)
}

// setNodeAffinity gives now the node affinity of was.
func setNodeAffinity(now, was *corev1.PodSpec) {
	if now.Affinity == nil && was.Affinity == nil {
		return
	}
	if now.Affinity == nil {
		now.Affinity = &corev1.Affinity{}
	}
	if was.Affinity == nil {
		now.Affinity.NodeAffinity = nil
		if *now.Affinity == (corev1.Affinity{}) {
			now.Affinity = nil
		}
		return
	}
	now.Affinity.NodeAffinity = was.Affinity.NodeAffinity
}
