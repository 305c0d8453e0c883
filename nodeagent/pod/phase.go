package pod

import (
	corev1 "k8s.io/api/core/v1"
)

// phase follows the kubelet's getPhase. A terminal phase is never left, and
// none is reached while a container runs, unless by the deadline.
func phase(d Desired, o Observed, all []corev1.ContainerStatus) corev1.PodPhase {
	switch {
	case terminal(d.Pod.Status.Phase):
		return d.Pod.Status.Phase
	case o.pastDeadline():
		return corev1.PodFailed
	case initFailed(d.Pod, o):
		return whenStopped(o, corev1.PodFailed, corev1.PodPending)
	case !initialized(d.Pod, o) && !allEnded(d.Pod, o):
		return corev1.PodPending
	}
	var waiting, running, stopped, succeeded int
	for _, c := range all {
		switch {
		case c.State.Running != nil:
			running++
		case c.State.Terminated != nil:
			stopped++
			if c.State.Terminated.ExitCode == 0 {
				succeeded++
			}
		case c.LastTerminationState.Terminated != nil:
			stopped++
		default:
			waiting++
		}
	}
	switch {
	case waiting > 0:
		return corev1.PodPending
	case running > 0 || d.Pod.Spec.RestartPolicy == corev1.RestartPolicyAlways || d.Pod.Spec.RestartPolicy == "":
		return corev1.PodRunning
	case stopped == succeeded:
		return whenStopped(o, corev1.PodSucceeded, corev1.PodRunning)
	case d.Pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
		return whenStopped(o, corev1.PodFailed, corev1.PodRunning)
	}
	return corev1.PodRunning
}

// whenStopped is then when no container runs any more, before that meanwhile.
func whenStopped(o Observed, then, meanwhile corev1.PodPhase) corev1.PodPhase {
	if len(o.running()) > 0 {
		return meanwhile
	}
	return then
}
