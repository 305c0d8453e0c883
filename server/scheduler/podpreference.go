package scheduler

import (
	"fmt"
	"slices"
)

// hardWeight is what the required affinity of a pod that is there counts for
// one that it selects: Kubernetes' default.
const hardWeight = 1

// PreferredPods prefers nodes near the pods that the pod's preferred affinity
// selects and far from those of its preferred anti-affinity; and so for the
// terms of the pods that are there already.
type PreferredPods struct{}

// Name implements Score.
func (PreferredPods) Name() string { return "InterPodAffinity" }

// Rank implements Score.
func (PreferredPods) Rank(s *Snapshot, p *Pod, nodes []*Node) Ranking {
	w := weights{s, map[string]map[string]int64{}}
	if len(p.terms.preferred)+len(p.terms.preferredAnti) > 0 {
		s.meant(func(q *Pod) {
			w.add(p.terms.preferred, q, q, 1, 0)
			w.add(p.terms.preferredAnti, q, q, -1, 0)
		}, p.terms.preferred, p.terms.preferredAnti)
	}
	for _, q := range s.withAffinity {
		w.add(q.terms.affinity, p, q, 1, hardWeight)
		w.add(q.terms.preferred, p, q, 1, 0)
		w.add(q.terms.preferredAnti, p, q, -1, 0)
	}
	if len(w.sums) == 0 || len(nodes) == 0 {
		return nil
	}
	raw := collect(nodes, w.of)
	scores := normalize(raw, slices.Min(raw), slices.Max(raw))
	if scores == nil {
		return nil
	}
	return ranks{scores, func(i int) string { return fmt.Sprintf("preferences for pods near add up to %d", raw[i]) }}
}

// weights adds up preferences by label and value.
type weights struct {
	snapshot *Snapshot
	sums     map[string]map[string]int64
}

// add counts the terms that match target, at the node of placed. fixed is the
// weight where terms have none.
func (w weights) add(list []term, target, placed *Pod, sign, fixed int64) {
	for i := range list {
		t := &list[i]
		if !t.matches(target, w.snapshot.namespaceLabels) {
			continue
		}
		n := w.snapshot.node(placed.node)
		if n == nil {
			return
		}
		value, has := n.Labels[t.key]
		if !has {
			continue
		}
		if w.sums[t.key] == nil {
			w.sums[t.key] = map[string]int64{}
		}
		w.sums[t.key][value] += sign * (t.weight + fixed)
	}
}

// of is the sum for one node.
func (w weights) of(n *Node) int64 {
	var sum int64
	for key, values := range w.sums {
		if value, has := n.Labels[key]; has {
			sum += values[value]
		}
	}
	return sum
}
