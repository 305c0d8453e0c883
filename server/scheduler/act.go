package scheduler

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bramble.dev/bramble/server/api"
)

// outcome is what became of a write.
type outcome struct {
	waiter *waiter
	node   string // "" for a condition
	ends   []*Pod // pods that are to make room
	err    error
}

// try decides for one pod and has the decision written down.
func (s *Scheduler) try(ctx context.Context, w *waiter, now time.Time) {
	s.snapshot.At(now)
	d := s.Profile.Decide(s.snapshot, w.pod)
	status := s.Profile.explain(&d, api.PlacementDecision, s.Now())
	if d.Node == "" {
		s.queue.failedAt(w, filtersOf(&d), now)
		candidate := s.makeRoom(w, &d, &status)
		s.why.put(&explanation{key(w.pod.Pod), w.pod.UID, status})
		s.say(ctx, w, status.Message, candidate)
		return
	}
	s.why.put(&explanation{key(w.pod.Pod), w.pod.UID, status})
	if waived := d.waived(); waived != "" {
		s.Recorder.Event(w.pod.Pod, corev1.EventTypeWarning, "BoardConditionsWaived", waived)
	}
	s.queue.drop(key(w.pod.Pod))
	s.snapshot.DeleteNominated(key(w.pod.Pod))
	s.snapshot.Assume(w.pod, d.Node)
	s.binding[key(w.pod.Pod)] = w
	pod := w.pod.Pod
	s.act(ctx, outcome{waiter: w, node: d.Node}, func() error { return s.Cluster.Bind(ctx, pod, d.Node) })
}

func filtersOf(d *Decision) []string {
	var names []string
	seen := map[string]bool{}
	for i := range d.Verdicts {
		for _, r := range d.Verdicts[i].Reasons {
			if !seen[r.Filter] {
				seen[r.Filter] = true
				names = append(names, r.Filter)
			}
		}
	}
	return names
}

// say tells people that w's pod fits nowhere, once for each message, and has the
// pods ended that candidate names.
func (s *Scheduler) say(ctx context.Context, w *waiter, message string, candidate Candidate) {
	pod := w.pod.Pod
	if w.said != message {
		w.said = message
		s.Recorder.Event(pod, corev1.EventTypeWarning, "FailedScheduling", message)
	}
	nominated := s.snapshot.Nominated(key(pod))
	if len(candidate.Victims) == 0 && isSaid(pod, message, nominated) {
		return
	}
	s.act(ctx, outcome{waiter: w, ends: candidate.Victims}, func() error {
		// Room is kept before there is any, so that a restart does not end more pods.
		err := s.Cluster.Unschedulable(ctx, pod, message, nominated)
		if err != nil {
			return err
		}
		return s.evict(ctx, pod, candidate)
	})
}

// isSaid reports whether the pod's status says all this already.
func isSaid(pod *corev1.Pod, message, nominated string) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Message == message {
			return pod.Status.NominatedNodeName == nominated
		}
	}
	return false
}

// act runs write on a goroutine of its own and hears of its outcome.
func (s *Scheduler) act(ctx context.Context, o outcome, write func() error) {
	s.acting++
	s.workers.Go(func() {
		o.err = write()
		select {
		case s.acted <- o:
		case <-ctx.Done():
		}
	})
}

// finish takes a write's outcome over: what was assumed of one that failed is taken
// back, and tried again unless the pod is gone.
func (s *Scheduler) finish(o outcome) {
	s.acting--
	pod := o.waiter.pod.Pod
	k := key(pod)
	switch {
	case o.err == nil && o.node != "":
		s.Recorder.Event(pod, corev1.EventTypeNormal, "Scheduled",
			"Successfully assigned "+k.String()+" to "+o.node)
	case o.err == nil, o.node == "" && len(o.ends) == 0 && apierrors.IsNotFound(o.err): // the pod is gone: nobody reads its condition
	case len(o.ends) > 0:
		s.Log.Warn("cannot make room for pod", "pod", k.String(), "err", o.err)
		s.keep(o.ends)
		if s.queue.get(k) == o.waiter {
			s.queue.retry(o.waiter, time.Now())
		}
	case o.node == "":
		s.Log.Warn("cannot set the condition of a pod that fits nowhere", "pod", k.String(), "err", o.err)
	case s.binding[k] == o.waiter: // else the pod was deleted or bound by another
		delete(s.binding, k)
		if s.snapshot.DeletePod(k) {
			s.cause(PodLeft)
		}
		if apierrors.IsNotFound(o.err) || pod.DeletionTimestamp != nil {
			return
		}
		s.Log.Warn("cannot bind pod", "pod", k.String(), "node", o.node, "err", o.err)
		s.queue.restore(o.waiter)
		s.queue.retry(o.waiter, time.Now())
	}
}
