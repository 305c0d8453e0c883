package scheduler

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// SoftSpread prefers nodes where fewer of the pods are that the constraints
// with ScheduleAnyway select. A domain weighs the less the fewer of its kind
// there are, as Kubernetes has it.
type SoftSpread struct{}

// Name implements Score.
func (SoftSpread) Name() string { return "PodTopologySpread" }

// Rank implements Score.
func (SoftSpread) Rank(s *Snapshot, p *Pod, nodes []*Node) Ranking {
	sp := newSpreading(s, p, corev1.ScheduleAnyway)
	if sp == nil || len(nodes) == 0 {
		return nil
	}
	there := sp.domains(s, nodes)
	raw := make([]int64, len(nodes))
	labelled := make([]bool, len(nodes))
	low, high := int64(math.MaxInt64), int64(0)
	for i, n := range nodes {
		if labelled[i] = sp.hasAll(n); !labelled[i] {
			continue
		}
		sum := 0.0
		for j := range sp.constraints {
			k := &sp.constraints[j]
			sum += float64(there[j][n.Labels[k.key]])*math.Log(float64(len(there[j])+2)) + float64(k.maxSkew-1)
		}
		raw[i] = int64(math.Round(sum))
		low, high = min(low, raw[i]), max(high, raw[i])
	}
	scores := make([]int64, len(nodes))
	for i := range nodes {
		switch {
		case !labelled[i]: // the last choice
		case high == 0:
			scores[i] = 100
		default:
			scores[i] = 100 * (high + low - raw[i]) / high
		}
	}
	if slices.Min(scores) == slices.Max(scores) {
		return nil
	}
	return ranks{scores, func(i int) string {
		if !labelled[i] {
			return "has not the labels to spread by"
		}
		return fmt.Sprintf("such pods near weigh %d", raw[i])
	}}
}

// domains counts the pods in each domain that one of nodes is in.
func (sp *spreading) domains(s *Snapshot, nodes []*Node) []map[string]int {
	there := make([]map[string]int, len(sp.constraints))
	for j := range sp.constraints {
		there[j] = map[string]int{}
		for _, n := range nodes {
			if sp.hasAll(n) {
				there[j][n.Labels[sp.constraints[j].key]] = 0
			}
		}
	}
	for _, n := range s.nodes {
		if !sp.hasAll(n) {
			continue
		}
		for j := range sp.constraints {
			here, value := sp.here[j][n.Name], n.Labels[sp.constraints[j].key]
			if _, known := there[j][value]; known && here > 0 && sp.counts(j, n) {
				there[j][value] += here
			}
		}
	}
	return there
}
