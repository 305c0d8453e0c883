package pod

import "bramble.dev/bramble/nodeagent/container"

// Logged returns the container whose log is meant by a container's name: the one
// that its state is about or, where previous is set, its last state, as Status
// reports them. While an ended container waits for its restart, that is the same.
// An empty ID means none: nothing was started yet, or ended before.
func Logged(d Desired, engine container.Pod, name string, previous bool) container.State {
	c, before := Latest(engine, name)
	unborn := c.ID == "" || c.Phase == container.Created && c.StartedAt.IsZero()
	switch {
	case !previous && unborn:
		return before
	case !previous:
		return c
	}
	m, known := memberOf(d.Pod, name)
	o := Observed{Engine: engine}
	over := !unborn && (c.Phase == container.Exited || lost(c))
	if known && over && !d.leaving() && !finished(d, o) && !ended(m.policy, c, o) {
		return c
	}
	return before
}
