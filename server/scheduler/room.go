package scheduler

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/server/api"
)

// makeRoom looks whether w's pod, which fits nowhere, is to get a node from less
// important pods, and keeps the room for it. It says so in status. What it
// returns is still to be done.
func (s *Scheduler) makeRoom(w *waiter, d *Decision, status *api.PlacementStatus) Clearing {
	k := key(w.pod.Pod)
	if at := s.snapshot.Nominated(k); at != "" && s.isClearing(at, w.pod) {
		status.Message += fmt.Sprintf("; waits for %s, which less important pods are leaving", at)
		return Clearing{}
	}
	clearing, found := s.Profile.Preempt(s.snapshot, w.pod, d)
	if !found {
		if s.snapshot.Dismiss(k) {
			s.cause(PodLeft)
		}
		return Clearing{}
	}
	s.snapshot.Nominate(w.pod, clearing.Node)
	noun := "pod"
	if len(clearing.Victims) > 1 {
		noun = "pods"
	}
	status.Message += fmt.Sprintf("; gets %s from %d %s of lower priority (%d, of at most %d)", clearing.Node,
		len(clearing.Victims), noun, w.pod.Priority, clearing.Victims[0].Priority)
	for _, v := range clearing.Victims {
		s.endFor(v, w.pod, clearing.Node)
	}
	s.passOver(w.pod, clearing.Node)
	return clearing
}

// endFor notes that v makes room for p.
func (s *Scheduler) endFor(v, p *Pod, node string) {
	v.ending = true // of this snapshot alone: the event of the deletion comes soon
	s.ended[v.key()] = fmt.Sprintf("the pod has to leave %s, for one of priority %d; its own is %d", node, p.Priority, v.Priority)
}

// keep takes endFor back for those of victims that are not being deleted.
func (s *Scheduler) keep(victims []*Pod) {
	for _, v := range victims {
		if now := s.snapshot.pods[v.key()]; now != nil && now.UID == v.UID && now.DeletionTimestamp == nil {
			now.ending = false
			delete(s.ended, v.key())
		}
	}
}

// isClearing reports whether a pod that p outranks is leaving the node.
func (s *Scheduler) isClearing(node string, p *Pod) bool {
	n := s.snapshot.node(node)
	if n == nil {
		return false
	}
	for _, q := range n.pods {
		if q.ending && p.outranks(q) {
			return true
		}
	}
	return false
}

// passOver has the pods look for another node that room is kept for on node and
// that p outranks: the room is p's.
func (s *Scheduler) passOver(p *Pod, node string) {
	for k, q := range s.snapshot.coming {
		if q.node != node || !p.outranks(q) {
			continue
		}
		s.snapshot.Dismiss(k)
		if w := s.queue.get(k); w != nil {
			w.ready = true
		}
	}
}

// evict ends the pods that are to make room for pod.
func (s *Scheduler) evict(ctx context.Context, pod *corev1.Pod, clearing Clearing) error {
	var errs []error
	for _, v := range clearing.Victims {
		if v.DeletionTimestamp != nil {
			continue // it is leaving already
		}
		if err := s.Cluster.Evict(ctx, v.Pod); err != nil {
			errs = append(errs, fmt.Errorf("cannot end pod %s: %w", key(v.Pod), err))
			continue
		}
		// The other pod's name may be none of the reader's business.
		s.Recorder.Event(v.Pod, corev1.EventTypeNormal, "Preempted", fmt.Sprintf("Preempted by pod %s on node %s", pod.UID, clearing.Node))
	}
	return errors.Join(errs...)
}
