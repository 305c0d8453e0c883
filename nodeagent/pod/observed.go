package pod

import (
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/container"
)

// Desired is what is wanted of one pod.
type Desired struct {
	Pod     *corev1.Pod // nil: it is not wanted: whatever there is of it goes
	Address netip.Addr
	Hold    bool // it must not be started yet; what runs goes on
}

// leaving reports whether the pod is on its way out.
func (d Desired) leaving() bool {
	return d.Pod == nil || d.Pod.DeletionTimestamp != nil
}

// Observed is what there is of one pod. Engine is read anew at every turn; the
// rest is what this agent remembers of its own attempts, all of which may be
// lost at any time without harm.
type Observed struct {
	Engine   container.Pod
	Attached bool // by this agent since it started
	Mounted  bool // likewise
	// Retries holds, by container name, why something has to wait; "" stands
	// for the pod as a whole.
	Retries map[string]Retry
	// StartTime is when this node first took up the pod, by the node's clock.
	StartTime time.Time
	// Deadline is when activeDeadlineSeconds is over; zero: never.
	Deadline time.Time
	// LeavingSince is when the pod was first seen to be on its way out.
	LeavingSince time.Time
	Gone         bool // Forget is done
	// Conditions are those last reported by this agent; nil: none yet, and
	// those of Desired.Pod stand.
	Conditions []corev1.PodCondition
	Now        time.Time
}

// latest is Latest of the engine's pod.
func (o Observed) latest(name string) (current, previous container.State) {
	return Latest(o.Engine, name)
}

// Latest returns a pod's newest container of this name and the one before it;
// an empty ID means none.
func Latest(p container.Pod, name string) (current, previous container.State) {
	for _, c := range p.Containers {
		switch {
		case c.Name != name:
		case current.ID == "" || c.Restarts > current.Restarts:
			current, previous = c, current
		case previous.ID == "" || c.Restarts > previous.Restarts:
			previous = c
		}
	}
	return current, previous
}

func (o Observed) running() []container.State {
	var all []container.State
	for _, c := range o.Engine.Containers {
		if c.Phase == container.Running {
			all = append(all, c)
		}
	}
	return all
}

func (o Observed) pastDeadline() bool {
	return !o.Deadline.IsZero() && !o.Now.Before(o.Deadline)
}

// waits reports whether the container (or, by "", the pod) must be left alone
// at present.
func (o Observed) waits(name string) bool {
	return o.Now.Before(o.Retries[name].Until)
}

// lost reports whether a container was cut off while it ran, as by a power cut:
// the engine then has it as created (Podman 4) or as exited without an end
// (Podman 5). An end before the start is none of that: Podman notes the start
// only after it, so that a quick container seems to end first.
func lost(c container.State) bool {
	if c.StartedAt.IsZero() {
		return false
	}
	return c.Phase == container.Created && c.Error == "" ||
		c.Phase == container.Exited && c.FinishedAt.IsZero()
}
