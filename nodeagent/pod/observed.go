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
	// Health is what the probes say, by the engine's id.
	Health map[string]container.Health
	// Hooked are the running containers whose postStart hook is done, by the
	// engine's id. It is noted in the pod's directory too.
	Hooked map[string]bool
	// Condemned says of containers, by the engine's id, why they must end.
	Condemned map[string]string
	// Seen is the highest count of restarts that was seen, by container name.
	Seen map[string]int
	// Sandbox is this pod's life since the machine's start. What was made in an
	// earlier one has been ended by a reboot.
	Sandbox  string
	Released bool // the address was given back by this agent
	// StartTime is when this node first took up the pod, by the node's clock.
	StartTime time.Time
	// ActiveSince is StartTime by the monotonic clock, as far as it is known.
	ActiveSince time.Time
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

// stale reports whether a container was made before the machine's last start.
func (o Observed) stale(c container.State) bool { return c.ID != "" && c.Sandbox != o.Sandbox }

// cutOff reports whether a container is to be made in the place of one that the
// machine's start, or the end of all processes, has ended: the registry may be
// out of reach then, and the image that is there will do.
func (o Observed) cutOff(name string) bool {
	c, previous := o.latest(name)
	return o.stale(c) || lost(c) || c.StartedAt.IsZero() && lost(previous)
}

// count is the count of restarts of a container of which there is none: one
// that was there, and that somebody removed, was restarted.
func (o Observed) count(pod *corev1.Pod, name string) int {
	if seen, ok := o.Seen[name]; ok {
		return seen + 1
	}
	if st := statusOf(pod, name); st != nil && st.ContainerID != "" {
		return int(st.RestartCount) + 1
	}
	return 0
}

// statusOf is what the server has of a container, or nil.
func statusOf(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	for _, all := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range all {
			if all[i].Name == name {
				return &all[i]
			}
		}
	}
	return nil
}

// hooked reports whether a running container's postStart hook is done.
func (o Observed) hooked(spec *corev1.Container, c container.State) bool {
	return postStart(spec) == nil || o.Hooked[c.ID]
}

// health is what is known of a running container's probes.
func (o Observed) health(spec *corev1.Container, c container.State) container.Health {
	if h, known := o.Health[c.ID]; known {
		return h
	}
	return container.Health{Started: spec.StartupProbe == nil, Ready: spec.ReadinessProbe == nil}
}

// started reports whether a container runs, its hook is done and its startup
// probe has succeeded.
func (o Observed) started(spec *corev1.Container, c container.State) bool {
	return c.Phase == container.Running && o.hooked(spec, c) && o.health(spec, c).Started
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
