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
	w := weights{s, tally{}}
	if len(p.terms.preferred)+len(p.terms.preferredAnti) > 0 {
		s.meant(func(k *kin) {
			w.add(p.terms.preferred, k.like, k, 1, 0)
			w.add(p.terms.preferredAnti, k.like, k, -1, 0)
		}, p.terms.preferred, p.terms.preferredAnti)
	}
	for k := range s.kins.withAffinity {
		w.add(k.like.terms.affinity, p, k, 1, hardWeight)
		w.add(k.like.terms.preferred, p, k, 1, 0)
		w.add(k.like.terms.preferredAnti, p, k, -1, 0)
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
	sums     tally
}

// add counts the terms that match target, at the nodes of placed. fixed is the
// weight where terms have none.
func (w weights) add(list []term, target *Pod, placed *kin, sign, fixed int) {
	for i := range list {
		t := &list[i]
		if !t.matches(target, w.snapshot.namespaceLabels) {
			continue
		}
		for n, count := range w.snapshot.there(placed) {
			w.sums.add(t.key, n, count*sign*(t.weight+fixed))
		}
	}
}

// of is the sum for one node.
func (w weights) of(n *Node) int64 {
	sum := 0
	for key := range w.sums {
		sum += w.sums.of(key, n)
	}
	return int64(sum)
}
