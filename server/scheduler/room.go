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
func (s *Scheduler) makeRoom(w *waiter, d *Decision, status *api.PlacementStatus) Candidate {
	k := key(w.pod.Pod)
	if at := s.snapshot.Nominated(k); at != "" && s.hasLeavingVictims(at, w.pod) {
		status.Message += fmt.Sprintf("; waits for %s, which less important pods are leaving", at)
		return Candidate{}
	}
	candidate, found := s.Profile.Preempt(s.snapshot, w.pod, d)
	if !found {
		if s.snapshot.DeleteNominated(k) {
			s.cause(PodLeft)
		}
		return Candidate{}
	}
	s.snapshot.Nominate(w.pod, candidate.Node)
	noun := "pod"
	if len(candidate.Victims) > 1 {
		noun = "pods"
	}
	status.Message += fmt.Sprintf("; gets %s from %d %s of lower priority (%d, of at most %d)", candidate.Node,
		len(candidate.Victims), noun, w.pod.Priority, candidate.Victims[0].Priority)
	for _, v := range candidate.Victims {
		s.endFor(v, w.pod, candidate.Node)
	}
	s.passOver(w.pod, candidate.Node)
	return candidate
}

// endFor notes that v makes room for p.
func (s *Scheduler) endFor(v, p *Pod, node string) {
	s.snapshot.setEnding(v, true) // of this snapshot alone: the event of the deletion comes soon
	s.ended[v.key()] = fmt.Sprintf("the pod has to leave %s, for one of priority %d; its own is %d", node, p.Priority, v.Priority)
}

// keep takes endFor back for those of victims that are not being deleted.
func (s *Scheduler) keep(victims []*Pod) {
	for _, v := range victims {
		if now := s.snapshot.pods[v.key()]; now != nil && now.UID == v.UID && now.DeletionTimestamp == nil {
			s.snapshot.setEnding(now, false)
			delete(s.ended, v.key())
		}
	}
}

// hasLeavingVictims reports whether a pod that p outranks is leaving the node.
func (s *Scheduler) hasLeavingVictims(node string, p *Pod) bool {
	n := s.snapshot.byName[node]
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
	for k, q := range s.snapshot.nominated {
		if q.node != node || !p.outranks(q) {
			continue
		}
		s.snapshot.DeleteNominated(k)
		if w := s.queue.get(k); w != nil {
			w.ready = true
		}
	}
}

// evict ends the pods that are to make room for pod.
func (s *Scheduler) evict(ctx context.Context, pod *corev1.Pod, candidate Candidate) error {
	var errs []error
	for _, v := range candidate.Victims {
		if v.DeletionTimestamp != nil {
			continue // it is leaving already
		}
		if err := s.Cluster.Evict(ctx, v.Pod); err != nil {
			errs = append(errs, fmt.Errorf("cannot end pod %s: %w", key(v.Pod), err))
			continue
		}
		// The other pod's name may be none of the reader's business.
		s.Recorder.Event(v.Pod, corev1.EventTypeNormal, "Preempted", fmt.Sprintf("Preempted by pod %s on node %s", pod.UID, candidate.Node))
	}
	return errors.Join(errs...)
}
