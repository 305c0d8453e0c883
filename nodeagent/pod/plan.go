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
		return planStop(d, o, "Stopping container %s")
	case d.Hold:
		return nil
	}
	return planRun(d, o)
}

// planRun brings the pod's surroundings up, then each container.
func planRun(d Desired, o Observed) []Step {
	var around, inside []Step
	for i := range d.Pod.Spec.Containers {
		inside = append(inside, planContainer(d.Pod, &d.Pod.Spec.Containers[i], o)...)
	}
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

// planContainer decides about one container by its newest incarnation.
func planContainer(pod *corev1.Pod, spec *corev1.Container, o Observed) []Step {
	c, _ := o.latest(spec.Name)
	changed := c.ID != "" && c.Hash != "" && c.Hash != Hash(spec)
	switch {
	case changed && c.Phase == container.Running:
		return []Step{stopStep(c, graceSeconds(pod), "Container %s definition changed, will be restarted")}
	case c.Phase == container.Running || o.waits(spec.Name):
		return nil
	case c.ID == "":
		return incarnate(spec, 0)
	case changed && !c.StartedAt.IsZero():
		return append(removeOlder(c, o), incarnate(spec, c.Restarts+1)...)
	case changed:
		return append([]Step{{Action: RemoveContainer, Container: spec.Name, ID: c.ID}}, incarnate(spec, c.Restarts)...)
	case ended(pod, c, o):
		return nil
	case c.Phase == container.Created || lost(c):
		return []Step{{Action: StartContainer, Container: spec.Name, ID: c.ID}}
	}
	return append(removeOlder(c, o), incarnate(spec, c.Restarts+1)...)
}

// incarnate makes and starts a container.
func incarnate(spec *corev1.Container, restarts int) []Step {
	return []Step{
		{Action: PullImage, Container: spec.Name},
		{Action: CreateContainer, Container: spec.Name, Restarts: restarts},
		{Action: StartContainer, Container: spec.Name},
	}
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
func ended(pod *corev1.Pod, c container.State, o Observed) bool {
	if c.ID == "" || c.Phase == container.Running {
		return false
	}
	startFailed := c.Phase == container.Created && o.Retries[c.Name].Reason == ReasonRunContainerError
	over := c.Phase == container.Exited || lost(c) || startFailed
	switch pod.Spec.RestartPolicy {
	case corev1.RestartPolicyNever:
		return over
	case corev1.RestartPolicyOnFailure:
		return c.Phase == container.Exited && !lost(c) && c.ExitCode == 0
	}
	return false
}

// finished reports whether the pod's end is reached: what the server (or the
// node's record) already says, a deadline, or every container ended for good.
func finished(d Desired, o Observed) bool {
	if terminal(d.Pod.Status.Phase) || o.pastDeadline() {
		return true
	}
	for _, spec := range d.Pod.Spec.Containers {
		if c, _ := o.latest(spec.Name); !ended(d.Pod, c, o) {
			return false
		}
	}
	return len(d.Pod.Spec.Containers) > 0
}

func terminal(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

// planRemoval stops what runs, and then takes everything away. The final
// status is reported between the two.
func planRemoval(d Desired, o Observed) []Step {
	if o.waits("") {
		return nil
	}
	if steps := planStop(d, o, "Stopping container %s"); len(steps) > 0 {
		return steps
	}
	return []Step{{Action: RemovePod}, {Action: Detach}, {Action: Unmount}, {Action: Forget}}
}

// planStop stops all containers that run, each with what is left of the grace.
func planStop(d Desired, o Observed, why string) []Step {
	grace := int64(2) // of a pod of which nothing is known any more
	if d.Pod != nil {
		grace = graceSeconds(d.Pod)
	}
	if !o.LeavingSince.IsZero() {
		grace = max(0, grace-int64(o.Now.Sub(o.LeavingSince).Seconds()))
	}
	var steps []Step
	for _, c := range o.running() {
		steps = append(steps, stopStep(c, grace, why))
	}
	return steps
}

func stopStep(c container.State, grace int64, why string) Step {
	return Step{Action: StopContainer, Container: c.Name, ID: c.ID, GraceSeconds: grace, Why: fmt.Sprintf(why, c.Name)}
}

// graceSeconds is at least one, as the kubelet has it: a process gets the
// chance to end by itself.
func graceSeconds(pod *corev1.Pod) int64 {
	grace := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		grace = *pod.Spec.TerminationGracePeriodSeconds
	}
	if pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil {
		grace = *pod.DeletionGracePeriodSeconds
	}
	return max(1, grace)
}
