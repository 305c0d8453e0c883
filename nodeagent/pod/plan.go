package pod

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/container"
)

// Plan returns what is to be done now to bring a pod from what is observed to
// what is desired, in order; none when there is nothing to do but wait (Wake
// says until when). It is pure.
func Plan(d Desired, o Observed) []Step {
	switch {
	case o.Gone:
		return nil
	case d.leaving():
		return planRemoval(d, o)
	case o.waits(""):
		return nil
	case finished(d, o):
		return planEnd(d, o)
	case d.Hold:
		return nil
	}
	return planRun(d, o)
}

// planRun brings the pod's surroundings up, then its containers. What must be
// stopped goes first, and alone.
func planRun(d Desired, o Observed) []Step {
	if steps := planSandboxChange(d, o); len(steps) > 0 {
		return steps
	}
	inside := planMembers(d.Pod, o)
	if stops := stopsOf(inside); len(stops) > 0 {
		return stops
	}
	var around []Step
	if !o.Attached {
		around = append(around, Step{Action: Attach})
	}
	if !o.Mounted {
		around = append(around, Step{Action: Mount})
	}
	if !o.Engine.Running {
		around = append(around, Step{Action: CreatePod})
	}
	return append(around, inside...)
}

func stopsOf(steps []Step) []Step {
	var stops []Step
	for _, step := range steps {
		if step.Action == StopContainer {
			stops = append(stops, step)
		}
	}
	return stops
}

// planMembers takes the init containers one after the other and, when all have
// done their work, the sidecars and the others side by side.
func planMembers(pod *corev1.Pod, o Observed) []Step {
	begun := initialized(pod, o)
	var steps []Step
	for _, m := range members(pod) {
		if m.role == initial && (begun || served(m, o)) {
			continue
		}
		steps = append(steps, planMember(pod, m, o)...)
		if !begun && !served(m, o) {
			break
		}
	}
	return steps
}

// planMember decides about one container by its newest incarnation.
func planMember(pod *corev1.Pod, m member, o Observed) []Step {
	spec := m.spec
	c, _ := o.latest(spec.Name)
	again := isChanged(spec, c) || m.role == initial && o.stale(c)
	kept := !isChanged(spec, c) && o.cutOff(spec.Name)
	switch {
	case c.Phase == container.Running:
		return planRunning(pod, spec, c, o)
	case o.waits(spec.Name):
		return nil
	case c.ID == "":
		return incarnate(spec, o.count(pod, spec.Name), kept)
	case again && c.StartedAt.IsZero():
		return append([]Step{{Action: RemoveContainer, Container: spec.Name, ID: c.ID}}, incarnate(spec, c.Restarts, kept)...)
	case again:
		return append(removeOlder(c, o), incarnate(spec, c.Restarts+1, kept)...)
	case ended(m.policy, c, o):
		return nil
	case c.Phase == container.Created && c.StartedAt.IsZero() && o.Retries[spec.Name].Reason == ReasonRunContainerError:
		// What could not be started once may lack its files: it is made anew.
		return append([]Step{{Action: RemoveContainer, Container: spec.Name, ID: c.ID}}, incarnate(spec, c.Restarts, kept)...)
	case c.Phase == container.Created && !lost(c) && o.Retries[spec.Name].Reason != ReasonRunContainerError:
		return begin(spec, c.ID)
	}
	return append(removeOlder(c, o), incarnate(spec, c.Restarts+1, kept)...)
}

func isChanged(spec *corev1.Container, c container.State) bool {
	return c.ID != "" && c.Hash != "" && c.Hash != Hash(spec)
}

// planRunning decides about a container that runs: whether it must end, or its
// hook is still to be run.
func planRunning(pod *corev1.Pod, spec *corev1.Container, c container.State, o Observed) []Step {
	failed := o.Health[c.ID].Failed
	switch {
	case isChanged(spec, c):
		return []Step{stopStep(c, graceSeconds(pod), "Container %s definition changed, will be restarted")}
	case o.Condemned[c.ID] != "":
		return []Step{stopStep(c, graceSeconds(pod), "Container %s: "+o.Condemned[c.ID])}
	case failed != "":
		why := "Container %s failed " + string(failed) + " probe"
		if pod.Spec.RestartPolicy != corev1.RestartPolicyNever {
			why += ", will be restarted"
		}
		return []Step{stopStep(c, probeGrace(pod, spec, failed), why)}
	case !o.hooked(spec, c):
		return []Step{{Action: PostStart, Container: spec.Name, ID: c.ID}}
	}
	return nil
}

// incarnate makes and starts a container, of a kept image if there is one.
func incarnate(spec *corev1.Container, restarts int, kept bool) []Step {
	return append([]Step{
		{Action: PullImage, Container: spec.Name, Kept: kept},
		{Action: CreateContainer, Container: spec.Name, Restarts: restarts},
	}, begin(spec, "")...)
}

// begin starts a container and runs its hook; by "" the one just made.
func begin(spec *corev1.Container, id string) []Step {
	steps := []Step{{Action: StartContainer, Container: spec.Name, ID: id}}
	if postStart(spec) != nil {
		steps = append(steps, Step{Action: PostStart, Container: spec.Name, ID: id})
	}
	return steps
}

// removeOlder removes what came before c: only the last ended container is
// kept, for its status and logs.
func removeOlder(c container.State, o Observed) []Step {
	var steps []Step
	for _, old := range o.Engine.Containers {
		if old.Name == c.Name && old.Restarts < c.Restarts {
			steps = append(steps, Step{Action: RemoveContainer, Container: old.Name, ID: old.ID})
		}
	}
	return steps
}

// ended reports whether a container that does not run will not run again.
func ended(policy corev1.RestartPolicy, c container.State, o Observed) bool {
	if c.ID == "" || c.Phase == container.Running {
		return false
	}
	startFailed := c.Phase == container.Created && o.Retries[c.Name].Reason == ReasonRunContainerError
	over := c.Phase == container.Exited || lost(c) || startFailed
	switch policy {
	case corev1.RestartPolicyNever:
		return over
	case corev1.RestartPolicyOnFailure:
		return c.Phase == container.Exited && !lost(c) && c.ExitCode == 0
	}
	return false
}

// finished reports whether the pod's end is reached: what the server (or the
// node's record) already says, a deadline, an init container that failed for
// good, or every container ended for good.
func finished(d Desired, o Observed) bool {
	return terminal(d.Pod.Status.Phase) || o.pastDeadline() || initFailed(d.Pod, o) || allEnded(d.Pod, o)
}

// allEnded reports whether all containers but the init containers and sidecars
// have ended for good.
func allEnded(pod *corev1.Pod, o Observed) bool {
	for _, m := range members(pod) {
		if c, _ := o.latest(m.spec.Name); m.role == ordinary && !ended(m.policy, c, o) {
			return false
		}
	}
	return len(pod.Spec.Containers) > 0
}

func terminal(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

func stopStep(c container.State, grace int64, why string) Step {
	return Step{Action: StopContainer, Container: c.Name, ID: c.ID, GraceSeconds: grace, Why: fmt.Sprintf(why, c.Name)}
}
