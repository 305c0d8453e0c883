package pod

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/nodeagent/container"
)

func containerStatus(d Desired, m member, o Observed) corev1.ContainerStatus {
	spec := m.spec
	c, previous := o.latest(spec.Name)
	st := corev1.ContainerStatus{Name: spec.Name, Image: spec.Image}
	if c.ID != "" {
		st.ContainerID = containerID(c)
		st.ImageID = imageID(c.ImageID)
		st.RestartCount = int32(c.Restarts)
	}
	if previous.ID != "" {
		st.LastTerminationState.Terminated = terminated(previous)
	}
	started := false
	switch {
	case c.ID != "" && c.Phase == container.Running && o.hooked(spec, c):
		st.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.StartedAt)}
		started = m.role != initial && o.started(spec, c)
		st.Ready = started && o.health(spec, c).Ready && !d.leaving()
	case c.ID != "" && c.Phase == container.Running:
		st.State.Waiting = waiting(d, Retry{}, o) // for its hook
	default:
		notRunning(d, m, o, c, &st)
		st.Ready = m.role == initial && st.State.Terminated != nil && st.State.Terminated.ExitCode == 0
	}
	st.Started = &started
	return st
}

// notRunning fills in the state of a container that does not run.
func notRunning(d Desired, m member, o Observed, c container.State, st *corev1.ContainerStatus) {
	retry := o.Retries[m.spec.Name]
	over := c.ID != "" && (c.Phase == container.Exited || lost(c))
	isLeft := d.leaving() || finished(d, o)
	switch {
	case m.role == initial && initialized(d.Pod, o) && !over:
		st.State.Terminated = &corev1.ContainerStateTerminated{Reason: ReasonCompleted,
			Message: "Unable to get init container status from container runtime and pod has been initialized, treat it as exited normally"}
	case over && !isLeft && o.toCome(d.Pod, m, c):
		st.State.Waiting = waiting(d, Retry{}, o)
		st.LastTerminationState.Terminated = terminated(c)
	case c.ID != "" && c.Phase == container.Created && !over && ended(m.policy, c, o):
		st.State.Terminated = startFailure(c, retry)
	case over && !isLeft && !ended(m.policy, c, o) && o.waits(c.Name):
		st.State.Waiting = waiting(d, retry, o)
		st.LastTerminationState.Terminated = terminated(c)
	case over:
		st.State.Terminated = terminated(c)
	default:
		st.State.Waiting = waiting(d, retry, o)
	}
}

// toCome reports whether a container that ended before the machine's last start
// has to wait for init containers, or for its own turn among them.
func (o Observed) toCome(pod *corev1.Pod, m member, c container.State) bool {
	return !initialized(pod, o) && (m.role == ordinary || o.stale(c))
}

// waiting names what a container waits for, in the kubelet's words.
func waiting(d Desired, r Retry, o Observed) *corev1.ContainerStateWaiting {
	fresh := o.Now.Before(r.Since.Add(freshFor))
	switch {
	case r.Reason == ReasonErrImagePull && !fresh:
		return &corev1.ContainerStateWaiting{Reason: ReasonImagePullBackOff, Message: "Back-off pulling image: " + r.Message}
	case r.Reason != "":
		return &corev1.ContainerStateWaiting{Reason: r.Reason, Message: r.Message}
	case o.Now.Before(r.Until):
		return &corev1.ContainerStateWaiting{
			Reason:  ReasonCrashLoopBackOff,
			Message: fmt.Sprintf("back-off %s restarting failed container", r.Delay),
		}
	}
	w := &corev1.ContainerStateWaiting{Reason: ReasonContainerCreating}
	if len(d.Pod.Spec.InitContainers) > 0 {
		w.Reason = ReasonPodInitializing
	}
	if around := o.Retries[""]; around.Reason != "" {
		w.Message = around.Message
	}
	return w
}
