package scheduler

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// NodeAffinity wants a node that the pod's nodeSelector and its required node
// affinity select.
type NodeAffinity struct{}

// Name implements Filter.
func (NodeAffinity) Name() string { return "NodeAffinity" }

// Cures implements Filter.
func (NodeAffinity) Cures(c Cause) bool { return c.ofNodes() }

// Prepare implements Filter.
func (NodeAffinity) Prepare(_ *Snapshot, p *Pod) Check {
	words := same("did not match the pod's node selector")
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		words = same("did not match the pod's node affinity")
		if len(p.Spec.NodeSelector) > 0 {
			words = same("did not match the pod's node selector and affinity")
		}
	} else if len(p.Spec.NodeSelector) == 0 {
		return nil
	}
	selector := nodeaffinity.GetRequiredNodeAffinity(p.Pod)
	return checkFunc(func(n *Node) []Reason {
		if ok, err := selector.Match(n.Node); ok && err == nil {
			return nil
		}
		return []Reason{words}
	})
}

// PreferredNodes prefers the nodes that the pod's preferred node affinity
// selects, by the sum of the terms' weights.
type PreferredNodes struct{}

// Name implements Score.
func (PreferredNodes) Name() string { return "NodeAffinity" }

// Rank implements Score.
func (PreferredNodes) Rank(_ *Snapshot, p *Pod, nodes []*Node) Ranking {
	a := p.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || len(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) == 0 || len(nodes) == 0 {
		return nil
	}
	terms, err := nodeaffinity.NewPreferredSchedulingTerms(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	if err != nil {
		return nil // admission lets none pass
	}
	raw := collect(nodes, func(n *Node) int64 { return terms.Score(n.Node) })
	scores := normalize(raw, 0, slices.Max(raw))
	if scores == nil {
		return nil
	}
	return ranks{scores, func(i int) string { return fmt.Sprintf("matches preferences of weight %d", raw[i]) }}
}

// SoftTaints prefers nodes with few taints PreferNoSchedule that the pod does
// not tolerate.
type SoftTaints struct{}

// Name implements Score.
func (SoftTaints) Name() string { return "TaintToleration" }

// Rank implements Score.
func (SoftTaints) Rank(_ *Snapshot, p *Pod, nodes []*Node) Ranking {
	raw := collect(nodes, func(n *Node) int64 {
		count := int64(0)
		for i := range n.Spec.Taints {
			if t := &n.Spec.Taints[i]; t.Effect == corev1.TaintEffectPreferNoSchedule && !tolerates(p, t) {
				count--
			}
		}
		return count
	})
	if len(raw) == 0 {
		return nil
	}
	scores := normalize(raw, slices.Min(raw), 0)
	if scores == nil {
		return nil
	}
	return ranks{scores, func(i int) string { return fmt.Sprintf("%d taints that the pod does not tolerate", -raw[i]) }}
}
