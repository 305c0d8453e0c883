package scheduler

// domain is a part of the cluster: the nodes that have the label.
type domain struct{ key, value string }

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
		snapshot: s, pod: p,
		wanted: map[domain]int{}, unwanted: map[domain]int{}, refusing: map[domain]int{},
		first: matchesAll(p.terms.affinity, p, s.namespaceLabels),
	}
	for _, q := range s.withAntiAffinity {
		if n := s.node(q.node); n != nil {
			c.countRefusing(q, n, 1)
		}
	}
	if len(p.terms.affinity)+len(p.terms.antiAffinity) > 0 {
		s.meant(func(q *Pod) {
			if n := s.node(q.node); n != nil {
				c.countOwn(q, n, 1)
			}
		}, p.terms.affinity, p.terms.antiAffinity)
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
	wanted, unwanted map[domain]int // of the pod's own terms
	refusing         map[domain]int // of the other pods' anti-affinity
	all              int            // in wanted
	first            bool           // the pod is one of those that it wants to be near
}

// Count implements Counting.
func (c *nearness) Count(q *Pod, n *Node, sign int) {
	c.countRefusing(q, n, sign)
	c.countOwn(q, n, sign)
}

func (c *nearness) countRefusing(q *Pod, n *Node, sign int) {
	for i := range q.terms.antiAffinity {
		t := &q.terms.antiAffinity[i]
		if value, has := n.Labels[t.key]; has && t.matches(c.pod, c.snapshot.namespaceLabels) {
			c.refusing[domain{t.key, value}] += sign
		}
	}
}

func (c *nearness) countOwn(q *Pod, n *Node, sign int) {
	own := &c.pod.terms
	if len(own.affinity) > 0 && matchesAll(own.affinity, q, c.snapshot.namespaceLabels) {
		for i := range own.affinity {
			if value, has := n.Labels[own.affinity[i].key]; has {
				c.wanted[domain{own.affinity[i].key, value}] += sign
				c.all += sign
			}
		}
	}
	for i := range own.antiAffinity {
		t := &own.antiAffinity[i]
		if value, has := n.Labels[t.key]; has && t.matches(q, c.snapshot.namespaceLabels) {
			c.unwanted[domain{t.key, value}] += sign
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
		key := c.pod.terms.antiAffinity[i].key
		if value, has := n.Labels[key]; has && c.unwanted[domain{key, value}] > 0 {
			reasons = append(reasons, same("had a pod near that the pod must not be near"))
			break
		}
	}
	if len(c.refusing) == 0 {
		return reasons
	}
	for key, value := range n.Labels {
		if c.refusing[domain{key, value}] > 0 {
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
		value, has := n.Labels[key]
		if !has {
			return false
		}
		there = there && c.wanted[domain{key, value}] > 0
	}
	return there || c.all == 0 && c.first
}
