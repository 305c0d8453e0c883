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

func (c *checks) count(q *Pod, n *Node, sign int) {
	for _, check := range c.counting {
		check.Count(q, n, sign)
	}
}

// alone says why n will not do as it is.
func (c *checks) alone(n *Node) []Rejection {
	var rejections []Rejection
	for _, check := range c.named {
		for _, r := range check.Check.Check(n) {
			rejections = append(rejections, Rejection{check.name, r})
		}
	}
	return rejections
}

// judge says why n will not do, also when the pods for which room is made there
// come: those count unless the pod is more important. What fits only because of
// them does not fit, for they may not come.
func (c *checks) judge(n *Node) []Rejection {
	coming := c.snapshot.comingTo(n.Name, c.pod)
	rejections := c.alone(n)
	if len(coming) == 0 || len(rejections) > 0 {
		return rejections
	}
	full := n.clone()
	for _, q := range coming {
		full.take(q, 1)
		c.count(q, full, 1)
	}
	rejections = c.alone(full)
	for _, q := range coming {
		c.count(q, full, -1)
	}
	for i := range rejections {
		rejections[i].Reason = Reason{"is kept for a pod that is as important", "are kept for pods that are as important"}
	}
	return rejections[:min(1, len(rejections))]
}
