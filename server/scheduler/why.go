package scheduler

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bramble.dev/bramble/server/api"
)

// question is one call of Explain, answered by Run's goroutine.
type question struct {
	pod    *corev1.Pod
	answer chan api.PlacementStatus // holds one
}

// Explain says why a pod is where it is, or why it is nowhere: by the decision
// if it is still known, else by the nodes as they are now. It works while Run
// runs; its errors are StatusErrors.
func (s *Scheduler) Explain(ctx context.Context, namespace, name string) (*api.Placement, error) {
	pod, err := s.Cluster.Pod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	q := question{pod, make(chan api.PlacementStatus, 1)}
	select {
	case s.asked <- q:
	case <-ctx.Done():
		return nil, apierrors.NewTimeoutError("the scheduler did not answer", 1)
	}
	p := &api.Placement{Status: <-q.answer}
	p.Namespace, p.Name, p.CreationTimestamp = pod.Namespace, pod.Name, pod.CreationTimestamp
	return p, nil
}

// explain answers on Run's goroutine.
func (s *Scheduler) explain(pod *corev1.Pod) api.PlacementStatus {
	node := pod.Spec.NodeName
	if x := s.why.get(key(pod), pod.UID); x != nil && (node == "" || node == x.status.NodeName) {
		status := x.status
		if node == "" {
			status.NodeName = ""
		}
		status.Message = sentence(&status, x.status.NodeName)
		if by := s.ended[key(pod)]; by != "" {
			status.Message = by + "; " + status.Message
		}
		return status
	}
	free := pod.DeepCopy()
	free.Spec.NodeName = ""
	var status api.PlacementStatus
	s.snapshot.At(time.Now())
	s.snapshot.without(key(pod), func() {
		d := s.Profile.Decide(s.snapshot, NewPod(free))
		status = s.Profile.explain(&d, api.PlacementNow, s.Now())
	})
	status.NodeName = node
	switch by := s.ended[key(pod)]; {
	case by != "":
		status.Message = by + "; if it were placed now: " + status.Message
	case hasEnded(pod):
		status.Message = "the pod has ended; if it were placed now: " + status.Message
	case node != "":
		status.Message = fmt.Sprintf("the pod is on %s, and the decision is not known any more; if it were placed now: %s", node, status.Message)
	case pod.Spec.SchedulerName != corev1.DefaultSchedulerName:
		status.Message = fmt.Sprintf("the pod waits for another scheduler, %q; here: %s", pod.Spec.SchedulerName, status.Message)
	case len(pod.Spec.SchedulingGates) > 0:
		status.Message = fmt.Sprintf("the pod waits until its scheduling gates are removed: %s; if it were placed now: %s", gates(pod), status.Message)
	case !s.synced:
		status.Message = "the scheduler is starting"
	}
	return status
}

// sentence puts the choice before the counts.
func sentence(s *api.PlacementStatus, chosen string) string {
	switch {
	case chosen == "":
		return s.Message
	case s.NodesFit == 1:
		return fmt.Sprintf("placed on %s, the only one that fits; %s", chosen, s.Message)
	}
	return fmt.Sprintf("placed on %s, which scores best; %s", chosen, s.Message)
}

func gates(p *corev1.Pod) string {
	names := make([]string, len(p.Spec.SchedulingGates))
	for i, g := range p.Spec.SchedulingGates {
		names[i] = g.Name
	}
	return strings.Join(names, ", ")
}
