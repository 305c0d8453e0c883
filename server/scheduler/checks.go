package scheduler

// checks is what a profile's filters have prepared for one pod.
type checks struct {
	pod      *Pod
	snapshot *Snapshot
	named    []namedCheck
	counting []Counting
}

type namedCheck struct {
	name string
	Check
}

// prepare has each filter look at s for p. What it returns holds until s changes.
func (f Profile) prepare(s *Snapshot, p *Pod) *checks {
	c := &checks{pod: p, snapshot: s, named: make([]namedCheck, 0, len(f.Filters))}
	for _, filter := range f.Filters {
		check := filter.Prepare(s, p)
		if check == nil {
			continue
		}
		c.named = append(c.named, namedCheck{filter.Name(), check})
		if counting, ok := check.(Counting); ok {
			c.counting = append(c.counting, counting)
		}
	}
	return c
}

// count makes it as if q were on n too (sign 1) or not any more (-1).
func (c *checks) count(q *Pod, n *Node, sign int) {
	for _, check := range c.counting {
		check.Count(q, n, sign)
	}
}

// filter says why n will not do as it is.
func (c *checks) filter(n *Node) []Rejection {
	var rejections []Rejection
	for _, check := range c.named {
		for _, r := range check.Check.Check(n) {
			rejections = append(rejections, Rejection{check.name, r})
		}
	}
	return rejections
}

// filterWithNominated says why n will not do, also when the pods that are nominated
// to it come: those count unless the pod is more important. What fits only because
// of them does not fit, for they may not come.
func (c *checks) filterWithNominated(n *Node) []Rejection {
	nominated := c.snapshot.nominatedTo(n.Name, c.pod)
	rejections := c.filter(n)
	if len(nominated) == 0 || len(rejections) > 0 {
		return rejections
	}
	full := n.clone()
	for _, q := range nominated {
		full.take(q, 1)
		c.count(q, full, 1)
	}
	rejections = c.filter(full)
	for _, q := range nominated {
		c.count(q, full, -1)
	}
	for i := range rejections {
		rejections[i].Reason = Reason{"was kept for a pod that is as important", "were kept for pods that are as important"}
	}
	return rejections[:min(1, len(rejections))]
}
