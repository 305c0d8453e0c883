package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// constraint is one of a pod's topologySpreadConstraints, compiled.
// matchLabelKeys are in the selector already: admission put them there.
type constraint struct {
	key                       string
	maxSkew, minDomains       int
	pods                      labels.Selector
	honourNodes, honourTaints bool // count only nodes that the pod could run on
	self                      int  // 1 if the selector selects the pod
}

// constraintsOf are p's constraints of one kind.
func constraintsOf(p *Pod, kind corev1.UnsatisfiableConstraintAction) []constraint {
	var all []constraint
	for i := range p.Spec.TopologySpreadConstraints {
		c := &p.Spec.TopologySpreadConstraints[i]
		if c.WhenUnsatisfiable != kind {
			continue
		}
		k := constraint{
			key: c.TopologyKey, maxSkew: int(c.MaxSkew), minDomains: 1, pods: selectorOf(c.LabelSelector),
			honourNodes:  c.NodeAffinityPolicy == nil || *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor,
			honourTaints: c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor,
		}
		if c.MinDomains != nil {
			k.minDomains = int(*c.MinDomains)
		}
		if k.pods.Matches(labels.Set(p.Labels)) {
			k.self = 1
		}
		all = append(all, k)
	}
	return all
}

// spreading is a pod's constraints of one kind and what they count.
type spreading struct {
	pod         *Pod
	constraints []constraint
	nodes       nodeaffinity.RequiredNodeAffinity
	here        []map[string]int // by constraint and node: the pods that it selects
}

func newSpreading(s *Snapshot, p *Pod, kind corev1.UnsatisfiableConstraintAction) *spreading {
	constraints := constraintsOf(p, kind)
	if len(constraints) == 0 {
		return nil
	}
	sp := &spreading{p, constraints, nodeaffinity.GetRequiredNodeAffinity(p.Pod), make([]map[string]int, len(constraints))}
	for i := range constraints {
		sp.here[i] = map[string]int{}
		for k := range s.kins.byNamespace[p.Namespace] {
			if !sp.selects(i, k.like) {
				continue
			}
			for node, count := range k.nodes {
				sp.here[i][node] += count
			}
		}
	}
	return sp
}

// selects reports whether constraint i counts q. Those that are leaving do not
// count.
func (sp *spreading) selects(i int, q *Pod) bool {
	return q.Namespace == sp.pod.Namespace && !q.ending && sp.constraints[i].pods.Matches(labels.Set(q.Labels))
}

// hasAll reports whether n has the labels of all constraints: else it counts
// for none.
func (sp *spreading) hasAll(n *Node) bool {
	for i := range sp.constraints {
		if _, has := n.Labels[sp.constraints[i].key]; !has {
			return false
		}
	}
	return true
}

// counts reports whether the pods of n count for constraint i.
func (sp *spreading) counts(i int, n *Node) bool {
	c := &sp.constraints[i]
	if c.honourNodes {
		if ok, err := sp.nodes.Match(n.Node); !ok || err != nil {
			return false
		}
	}
	return !c.honourTaints || len(untolerated(sp.pod, n)) == 0
}

// Spread wants a node with which the pods that a constraint (DoNotSchedule)
// selects stay spread as evenly as it says.
type Spread struct{}

// Name implements Filter.
func (Spread) Name() string { return "PodTopologySpread" }

// Cures implements Filter.
func (Spread) Cures(c Cause) bool { return c != NamespaceChanged }

// Prepare implements Filter.
func (Spread) Prepare(s *Snapshot, p *Pod) Check {
	sp := newSpreading(s, p, corev1.DoNotSchedule)
	if sp == nil {
		return nil
	}
	c := &evenness{spreading: sp, there: make([]map[string]int, len(sp.constraints)), least: make([]int, len(sp.constraints))}
	for i := range sp.constraints {
		c.there[i] = map[string]int{}
		c.least[i] = unknown
	}
	for _, n := range s.nodes {
		if !sp.hasAll(n) {
			continue
		}
		for i := range sp.constraints {
			if !sp.counts(i, n) {
				continue
			}
			c.there[i][n.Labels[sp.constraints[i].key]] += sp.here[i][n.Name]
		}
	}
	return c
}

// unknown says that the least number is to be looked for.
const unknown = -1

// evenness is how many pods the domains have.
type evenness struct {
	*spreading
	there []map[string]int // by constraint and value of its label
	least []int            // by constraint
}

// Count implements Counting.
func (c *evenness) Count(q *Pod, n *Node, sign int) {
	if !c.hasAll(n) {
		return
	}
	for i := range c.constraints {
		value := n.Labels[c.constraints[i].key]
		if _, counted := c.there[i][value]; counted && c.selects(i, q) && c.counts(i, n) {
			c.there[i][value] += sign
			c.least[i] = unknown
		}
	}
}

// Check implements Check.
func (c *evenness) Check(n *Node) []Reason {
	var reasons []Reason
	for i := range c.constraints {
		k := &c.constraints[i]
		value, has := n.Labels[k.key]
		switch {
		case !has:
			reasons = append(reasons, same("had no label "+k.key+" to spread by"))
		case c.there[i][value]+k.self-c.globalMinimum(i) > k.maxSkew:
			reasons = append(reasons, same("had too many such pods already in its part of "+k.key))
		}
	}
	return reasons
}

// globalMinimum is how many pods the domain has that has fewest: none if there are
// fewer domains than there should be.
func (c *evenness) globalMinimum(i int) int {
	if len(c.there[i]) < c.constraints[i].minDomains {
		return 0
	}
	if c.least[i] == unknown {
		found := false
		for _, count := range c.there[i] {
			if !found || count < c.least[i] {
				c.least[i], found = count, true
			}
		}
		c.least[i] = max(c.least[i], 0)
	}
	return c.least[i]
}
