package pod

import (
	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/container"
)

// minStopSeconds is what a container gets to end by itself though its hook or
// the containers before it took all of the pod's grace (the kubelet's).
const minStopSeconds = 2

// planRemoval stops what runs, and then takes everything away. The final
// status is reported between the two.
func planRemoval(d Desired, o Observed) []Step {
	if o.waits("") {
		return nil
	}
	if steps := planStop(d, o); len(steps) > 0 {
		return steps
	}
	return []Step{{Action: RemovePod}, {Action: Detach}, {Action: Unmount}, {Action: Forget}}
}

// planEnd stops what still runs of a pod that is over, and then gives back its
// address and its infra container. Its containers stay, for status and logs.
func planEnd(d Desired, o Observed) []Step {
	if steps := planStop(d, o); len(steps) > 0 {
		return steps
	}
	var steps []Step
	if !o.Released {
		steps = append(steps, Step{Action: Detach})
	}
	if o.Engine.Running {
		steps = append(steps, Step{Action: HaltPod})
	}
	return steps
}

// planStop stops all containers that run, each with what is left of the grace:
// first all but the sidecars, then those, the last one first.
func planStop(d Desired, o Observed) []Step {
	grace := int64(2) // of a pod of which nothing is known any more
	if d.Pod != nil {
		grace = graceSeconds(d.Pod)
	}
	if !o.LeavingSince.IsZero() {
		grace = max(0, grace-int64(o.Now.Sub(o.LeavingSince).Seconds()))
	}
	const why = "Stopping container %s"
	var steps []Step
	var last container.State // of the sidecars that run
	order := -1
	for _, c := range o.running() {
		place := sidecarPlace(d.Pod, c.Name)
		if place < 0 {
			steps = append(steps, stopStep(c, grace, why))
		} else if place > order {
			order, last = place, c
		}
	}
	if len(steps) == 0 && order >= 0 {
		steps = append(steps, stopStep(last, max(minStopSeconds, grace), why))
	}
	return steps
}

// sidecarPlace is a sidecar's place in the order of starts; -1 for a container
// that is none.
func sidecarPlace(pod *corev1.Pod, name string) int {
	if pod == nil {
		return -1
	}
	for i, m := range members(pod) {
		if m.role == sidecar && m.spec.Name == name {
			return i
		}
	}
	return -1
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

// probeGrace is the grace of a container whose probe failed: the probe's own
// goes before the pod's.
func probeGrace(pod *corev1.Pod, spec *corev1.Container, failed container.ProbeKind) int64 {
	probe := spec.LivenessProbe
	if failed == container.Startup {
		probe = spec.StartupProbe
	}
	if probe != nil && probe.TerminationGracePeriodSeconds != nil {
		return *probe.TerminationGracePeriodSeconds
	}
	return graceSeconds(pod)
}
