package scheduler

import "iter"

// PodAffinity wants a node near the pods that the pod's required affinity
// selects, and far from those of its required anti-affinity and from pods whose
// required anti-affinity selects it. Near is the same value of the label that
// the term names.
type PodAffinity struct{}

// Name implements Filter.
func (PodAffinity) Name() string { return "InterPodAffinity" }

// Cures implements Filter.
func (PodAffinity) Cures(Cause) bool { return true }

// Prepare implements Filter.
func (PodAffinity) Prepare(s *Snapshot, p *Pod) Check {
	c := &nearness{
		snapshot: s, pod: p, wanted: tally{}, unwanted: tally{}, refusing: tally{},
		first: matchesAll(p.terms.affinity, p, s.namespaceLabels),
	}
	for k := range s.kins.withAntiAffinity {
		c.countRefusing(k.like, s.there(k))
	}
	if len(p.terms.affinity)+len(p.terms.antiAffinity) > 0 {
		s.meant(func(k *kin) { c.countOwn(k.like, s.there(k)) }, p.terms.affinity, p.terms.antiAffinity)
	} else if len(c.refusing) == 0 && len(s.nominated) == 0 {
		return nil
	}
	return c
}

// nearness is where the pods are that matter to a pod's required affinity and
// anti-affinity, as numbers of them.
type nearness struct {
	snapshot         *Snapshot
	pod              *Pod
	wanted, unwanted tally // of the pod's own terms
	refusing         tally // of the other pods' anti-affinity
	all              int   // in wanted
	first            bool  // the pod is one of those that it wants to be near
}

// Count implements Counting.
func (c *nearness) Count(q *Pod, n *Node, sign int) {
	c.countRefusing(q, one(n, sign))
	c.countOwn(q, one(n, sign))
}

// countRefusing counts pods like q as those that may refuse the pod.
func (c *nearness) countRefusing(q *Pod, there iter.Seq2[*Node, int]) {
	for i := range q.terms.antiAffinity {
		t := &q.terms.antiAffinity[i]
		if !t.matches(c.pod, c.snapshot.namespaceLabels) {
			continue
		}
		for n, count := range there {
			c.refusing.add(t.key, n, count)
		}
	}
}

// countOwn counts pods like q as those that the pod's own terms may select.
func (c *nearness) countOwn(q *Pod, there iter.Seq2[*Node, int]) {
	own := &c.pod.terms
	if len(own.affinity) > 0 && matchesAll(own.affinity, q, c.snapshot.namespaceLabels) {
		for i := range own.affinity {
			for n, count := range there {
				if c.wanted.add(own.affinity[i].key, n, count) {
					c.all += count
				}
			}
		}
	}
	for i := range own.antiAffinity {
		t := &own.antiAffinity[i]
		if !t.matches(q, c.snapshot.namespaceLabels) {
			continue
		}
		for n, count := range there {
			c.unwanted.add(t.key, n, count)
		}
	}
}

// Check implements Check.
func (c *nearness) Check(n *Node) []Reason {
	var reasons []Reason
	if !c.near(n) {
		reasons = append(reasons, same("had none of the pods near that the pod must be near"))
	}
	for i := range c.pod.terms.antiAffinity {
		if c.unwanted.of(c.pod.terms.antiAffinity[i].key, n) > 0 {
			reasons = append(reasons, same("had a pod near that the pod must not be near"))
			break
		}
	}
	for key := range c.refusing {
		if c.refusing.of(key, n) > 0 {
			return append(reasons, same("had a pod near that must not be near the pod"))
		}
	}
	return reasons
}

// near reports whether the required affinity holds on n. The first pod of a
// group whose pods want each other near may be anywhere that has the labels.
func (c *nearness) near(n *Node) bool {
	there := true
	for i := range c.pod.terms.affinity {
		key := c.pod.terms.affinity[i].key
		if _, has := n.Labels[key]; !has {
			return false
		}
		there = there && c.wanted.of(key, n) > 0
	}
	return there || c.all == 0 && c.first
}
