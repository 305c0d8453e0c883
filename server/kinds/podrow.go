package kinds

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/server/objects"
)

// podReasonNodeLost is the reason in the status of a pod whose node is gone.
const podReasonNodeLost = "NodeLost"

func podRow(obj objects.Object, now time.Time) []any {
	p := obj.(*corev1.Pod)
	sum := summarise(p)
	restarts := fmt.Sprint(sum.restarts)
	if sum.restarts > 0 && !sum.lastRestart.IsZero() {
		restarts = fmt.Sprintf("%d (%s ago)", sum.restarts, since(sum.lastRestart, now))
	}
	address := p.Status.PodIP
	if len(p.Status.PodIPs) > 0 {
		address = p.Status.PodIPs[0].IP
	}
	return []any{
		fmt.Sprintf("%d/%d", sum.ready, sum.total), sum.reason, restarts,
		orElse(address, "<none>"), orElse(p.Spec.NodeName, "<none>"), orElse(p.Status.NominatedNodeName, "<none>"),
		readinessGates(p),
	}
}

// podSummary is a pod as one line of `get pods` has it.
type podSummary struct {
	total, ready int
	restarts     int32
	lastRestart  time.Time
	reason       string
}

// summarise follows what `kubectl get pods` documents: the phase, unless
// something closer to the containers says more, and Terminating above all.
func summarise(p *corev1.Pod) podSummary {
	s := podSummary{total: len(p.Spec.Containers), reason: orElse(p.Status.Reason, string(p.Status.Phase))}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			s.reason = corev1.PodReasonSchedulingGated
		}
	}
	sidecars := sidecarNames(p)
	s.total += len(sidecars)
	if initializing := s.addInit(p, sidecars); !initializing || hasCondition(p, corev1.PodInitialized) {
		s.addContainers(p)
	}
	if p.DeletionTimestamp == nil {
		return s
	}
	switch {
	case p.Status.Reason == podReasonNodeLost:
		s.reason = "Unknown"
	case p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed:
		s.reason = "Terminating"
	}
	return s
}

func sidecarNames(p *corev1.Pod) map[string]bool {
	names := map[string]bool{}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			names[c.Name] = true
		}
	}
	return names
}

// addInit looks at the init containers, and reports whether one of them has
// not done its work yet. While that is so, the restarts shown are theirs.
func (s *podSummary) addInit(p *corev1.Pod, sidecars map[string]bool) bool {
	for i := range p.Status.InitContainerStatuses {
		c := &p.Status.InitContainerStatuses[i]
		s.countRestarts(c)
		switch {
		case c.State.Terminated != nil && c.State.Terminated.ExitCode == 0:
			continue
		case sidecars[c.Name] && c.Started != nil && *c.Started:
			if c.Ready {
				s.ready++
			}
			continue
		case c.State.Terminated != nil:
			s.reason = "Init:" + terminatedReason(c.State.Terminated)
		case c.State.Waiting != nil && c.State.Waiting.Reason != "" && c.State.Waiting.Reason != "PodInitializing":
			s.reason = "Init:" + c.State.Waiting.Reason
		default:
			s.reason = fmt.Sprintf("Init:%d/%d", i, len(p.Spec.InitContainers))
		}
		return true
	}
	return false
}

// addContainers looks at the containers, of which the first that has something
// to say is heard.
func (s *podSummary) addContainers(p *corev1.Pod) {
	if len(sidecarNames(p)) == 0 {
		s.restarts, s.lastRestart = 0, time.Time{} // the init containers' are over
	}
	running := false
	for i := len(p.Status.ContainerStatuses) - 1; i >= 0; i-- {
		c := &p.Status.ContainerStatuses[i]
		s.countRestarts(c)
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			s.reason = c.State.Waiting.Reason
		case c.State.Terminated != nil:
			s.reason = terminatedReason(c.State.Terminated)
		case c.Ready && c.State.Running != nil:
			running = true
			s.ready++
		}
	}
	if s.reason != "Completed" || !running {
		return
	}
	s.reason = "NotReady"
	if hasCondition(p, corev1.PodReady) {
		s.reason = "Running"
	}
}

func (s *podSummary) countRestarts(c *corev1.ContainerStatus) {
	s.restarts += c.RestartCount
	if t := c.LastTerminationState.Terminated; t != nil && t.FinishedAt.After(s.lastRestart) {
		s.lastRestart = t.FinishedAt.Time
	}
}

func terminatedReason(t *corev1.ContainerStateTerminated) string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Signal != 0:
		return fmt.Sprintf("Signal:%d", t.Signal)
	}
	return fmt.Sprintf("ExitCode:%d", t.ExitCode)
}

func hasCondition(p *corev1.Pod, kind corev1.PodConditionType) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == kind && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

func readinessGates(p *corev1.Pod) string {
	if len(p.Spec.ReadinessGates) == 0 {
		return "<none>"
	}
	open := 0
	for _, g := range p.Spec.ReadinessGates {
		if hasCondition(p, g.ConditionType) {
			open++
		}
	}
	return fmt.Sprintf("%d/%d", open, len(p.Spec.ReadinessGates))
}
