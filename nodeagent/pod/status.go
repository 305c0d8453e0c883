package pod

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/nodeagent/container"
)

// exitUnknown is the code of a container whose end nobody saw (the kubelet's).
const exitUnknown = 137

// Status returns the pod's status as this node sees it, in the kubelet's
// phases, conditions and reasons. It has only what the node owns: conditions
// of others (PodScheduled) are not in it, qosClass is the server's own.
// Transition times are kept where nothing changed. It is pure; d.Pod must not be
// nil.
func Status(d Desired, o Observed, hostIP string) corev1.PodStatus {
	st := corev1.PodStatus{
		ObservedGeneration: d.Pod.Generation,
		HostIP:             hostIP,
		QOSClass:           d.Pod.Status.QOSClass,
	}
	if hostIP != "" {
		st.HostIPs = []corev1.HostIP{{IP: hostIP}}
	}
	if !o.StartTime.IsZero() {
		st.StartTime = &metav1.Time{Time: o.StartTime.Round(0).Truncate(time.Second)}
	}
	if d.Address.IsValid() && (o.Attached || d.Pod.Status.PodIP != "") {
		st.PodIP = d.Address.String()
		st.PodIPs = []corev1.PodIP{{IP: st.PodIP}}
	}
	for i := range d.Pod.Spec.Containers {
		st.ContainerStatuses = append(st.ContainerStatuses, containerStatus(d, &d.Pod.Spec.Containers[i], o))
	}
	st.Phase = phase(d, o, st.ContainerStatuses)
	if o.pastDeadline() && !terminal(d.Pod.Status.Phase) {
		st.Reason = ReasonDeadlineExceeded
		st.Message = "Pod was active on the node longer than the specified deadline"
	} else if terminal(d.Pod.Status.Phase) {
		st.Reason, st.Message = d.Pod.Status.Reason, d.Pod.Status.Message
	}
	st.Conditions = conditions(d, o, st)
	return st
}

// phase follows the kubelet's getPhase. A terminal phase is never left.
func phase(d Desired, o Observed, all []corev1.ContainerStatus) corev1.PodPhase {
	if terminal(d.Pod.Status.Phase) {
		return d.Pod.Status.Phase
	}
	if o.pastDeadline() {
		return corev1.PodFailed
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
		return corev1.PodSucceeded
	case d.Pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
		return corev1.PodFailed
	}
	return corev1.PodRunning
}

func containerStatus(d Desired, spec *corev1.Container, o Observed) corev1.ContainerStatus {
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
	retry := o.Retries[spec.Name]
	switch {
	case c.ID != "" && c.Phase == container.Running:
		st.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.StartedAt)}
		st.Ready = !d.leaving()
	case c.ID != "" && c.Phase == container.Created && ended(d.Pod, c, o):
		st.State.Terminated = startFailure(c, retry)
	case c.ID != "" && (c.Phase == container.Exited || lost(c)) && restPending(d, c, o):
		st.State.Waiting = waiting(retry, o)
		st.LastTerminationState.Terminated = terminated(c)
	case c.ID != "" && (c.Phase == container.Exited || lost(c)):
		st.State.Terminated = terminated(c)
	default:
		st.State.Waiting = waiting(retry, o)
	}
	started := st.State.Running != nil
	st.Started = &started
	return st
}

// restPending reports whether an ended container waits to be started again.
func restPending(d Desired, c container.State, o Observed) bool {
	return !d.leaving() && !finished(d, o) && !ended(d.Pod, c, o) && o.waits(c.Name)
}

// waiting names what a container waits for, in the kubelet's words.
func waiting(r Retry, o Observed) *corev1.ContainerStateWaiting {
	fresh := o.Now.Before(r.Since.Add(freshFor))
	switch {
	case r.Reason == ReasonErrImagePull && !fresh:
		return &corev1.ContainerStateWaiting{Reason: ReasonImagePullBackOff, Message: "Back-off pulling image: " + r.Message}
	case r.Reason != "":
		return &corev1.ContainerStateWaiting{Reason: r.Reason, Message: r.Message}
	case r.For != "" && o.Now.Before(r.Until):
		return &corev1.ContainerStateWaiting{
			Reason:  ReasonCrashLoopBackOff,
			Message: fmt.Sprintf("back-off %s restarting failed container", r.Delay),
		}
	}
	w := &corev1.ContainerStateWaiting{Reason: ReasonContainerCreating}
	if around := o.Retries[""]; around.Reason != "" {
		w.Message = around.Message
	}
	return w
}

// terminated says how a container ended.
func terminated(c container.State) *corev1.ContainerStateTerminated {
	t := &corev1.ContainerStateTerminated{
		ExitCode:    int32(c.ExitCode),
		Reason:      ReasonError,
		Message:     c.TerminationMessage,
		StartedAt:   metav1.NewTime(c.StartedAt),
		FinishedAt:  metav1.NewTime(c.FinishedAt),
		ContainerID: containerID(c),
	}
	if t.FinishedAt.Before(&t.StartedAt) {
		t.FinishedAt = t.StartedAt
	}
	switch {
	case lost(c):
		t.ExitCode, t.Reason = exitUnknown, ReasonStatusUnknown
		t.Message = "The container's end was not seen: the node lost power or its processes were killed"
		t.FinishedAt = metav1.Time{}
	case c.OOMKilled:
		t.Reason = ReasonOOMKilled
	case c.ExitCode == 0:
		t.Reason = ReasonCompleted
	}
	return t
}

// startFailure is the end of a container that never started (as containerd has it).
func startFailure(c container.State, r Retry) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{
		ExitCode: 128, Reason: ReasonStartError, Message: r.Message, ContainerID: containerID(c),
	}
}

// imageID is an image's digest with its algorithm, which the engine leaves out.
func imageID(id string) string {
	if id != "" && !strings.Contains(id, ":") {
		return "sha256:" + id
	}
	return id
}

func containerID(c container.State) string { return "podman://" + c.ID }

// conditions are those that the node owns, with the kubelet's reasons.
func conditions(d Desired, o Observed, st corev1.PodStatus) []corev1.PodCondition {
	initialized := corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}
	if st.Phase == corev1.PodSucceeded {
		initialized.Reason = "PodCompleted"
	}
	sandbox := corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse}
	if o.Attached && o.Engine.Running && !terminal(st.Phase) {
		sandbox.Status = corev1.ConditionTrue
	}
	ready := readiness(d, st)
	podReady, containersReady := ready, ready
	podReady.Type, containersReady.Type = corev1.PodReady, corev1.ContainersReady
	before := o.Conditions
	if before == nil {
		before = d.Pod.Status.Conditions
	}
	all := []corev1.PodCondition{sandbox, initialized, podReady, containersReady}
	for i := range all {
		all[i].ObservedGeneration = d.Pod.Generation
		all[i].LastTransitionTime = metav1.NewTime(o.Now.Round(0).Truncate(time.Second))
		for _, old := range before {
			if old.Type == all[i].Type && old.Status == all[i].Status {
				all[i].LastTransitionTime = old.LastTransitionTime
			}
		}
	}
	return all
}

// readiness is the kubelet's generateContainersReadyCondition.
func readiness(d Desired, st corev1.PodStatus) corev1.PodCondition {
	switch st.Phase {
	case corev1.PodSucceeded:
		return corev1.PodCondition{Status: corev1.ConditionFalse, Reason: "PodCompleted"}
	case corev1.PodFailed:
		return corev1.PodCondition{Status: corev1.ConditionFalse, Reason: "PodFailed"}
	}
	var unready []string
	for _, c := range st.ContainerStatuses {
		if !c.Ready {
			unready = append(unready, c.Name)
		}
	}
	if len(unready) > 0 || len(d.Pod.Spec.Containers) == 0 {
		return corev1.PodCondition{
			Status: corev1.ConditionFalse, Reason: "ContainersNotReady",
			Message: fmt.Sprintf("containers with unready status: [%s]", strings.Join(unready, " ")),
		}
	}
	return corev1.PodCondition{Status: corev1.ConditionTrue}
}
