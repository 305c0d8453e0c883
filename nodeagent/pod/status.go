package pod

import (
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
	if d.Pod.Spec.HostNetwork && hostIP != "" {
		st.PodIP, st.PodIPs = hostIP, []corev1.PodIP{{IP: hostIP}}
	} else if !d.Pod.Spec.HostNetwork && d.Address.IsValid() && (o.Attached || d.Pod.Status.PodIP != "") {
		st.PodIP = d.Address.String()
		st.PodIPs = []corev1.PodIP{{IP: st.PodIP}}
	}
	for _, m := range members(d.Pod) {
		if m.role == ordinary {
			st.ContainerStatuses = append(st.ContainerStatuses, containerStatus(d, m, o))
		} else {
			st.InitContainerStatuses = append(st.InitContainerStatuses, containerStatus(d, m, o))
		}
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
