package scheduler

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// happened takes an event over into the snapshot and the queue.
func (s *Scheduler) happened(e Event) {
	switch {
	case e.Synced:
		s.synced = true
	case e.Node != nil && e.Deleted:
		s.snapshot.DeleteNode(e.Node.Name)
	case e.Node != nil:
		s.putNode(e.Node)
	case e.Deleted:
		s.deletePod(e.Pod)
	default:
		s.putPod(e.Pod)
	}
}

func (s *Scheduler) putNode(n *corev1.Node) {
	i, known := s.snapshot.find(n.Name)
	changed := known && matters(n, s.snapshot.nodes[i].Node)
	s.snapshot.PutNode(n)
	switch {
	case !known:
		s.cause(NodeCame)
	case changed:
		s.cause(NodeChanged)
	}
}

// matters reports whether a filter could think otherwise of the node now.
func matters(now, was *corev1.Node) bool {
	return now.Spec.Unschedulable != was.Spec.Unschedulable ||
		!maps.Equal(now.Labels, was.Labels) ||
		!equality.Semantic.DeepEqual(now.Spec.Taints, was.Spec.Taints) ||
		!equality.Semantic.DeepEqual(now.Status.Allocatable, was.Status.Allocatable)
}

func (s *Scheduler) cause(c Cause) {
	s.queue.happened(c, func(name string, c Cause) bool {
		i := slices.IndexFunc(s.Profile.Filters, func(f Filter) bool { return f.Name() == name })
		return i >= 0 && s.Profile.Filters[i].Cures(c)
	})
}

func (s *Scheduler) deletePod(p *corev1.Pod) {
	k := key(p)
	s.queue.drop(k)
	delete(s.binding, k)
	s.why.drop(k)
	if s.snapshot.DeletePod(k) {
		s.cause(PodLeft)
	}
}

func (s *Scheduler) putPod(p *corev1.Pod) {
	k := key(p)
	if w := s.binding[k]; w != nil && w.pod.UID != p.UID {
		s.deletePod(w.pod.Pod) // another of that name came
	}
	switch {
	case hasEnded(p):
		s.queue.drop(k)
		delete(s.binding, k)
		if s.snapshot.DeletePod(k) {
			s.cause(PodLeft)
		}
	case p.Spec.NodeName != "":
		s.queue.drop(k)
		delete(s.binding, k)
		s.snapshot.PutPod(p)
	case s.binding[k] != nil: // older than the binding, unless that fails
		s.binding[k].pod = NewPod(p)
	case p.DeletionTimestamp != nil || p.Spec.SchedulerName != corev1.DefaultSchedulerName:
		s.queue.drop(k)
	default:
		s.putWaiter(p)
	}
}

// putWaiter lets p be tried, unless nothing of it changed that matters.
func (s *Scheduler) putWaiter(p *corev1.Pod) {
	w := s.queue.get(key(p))
	if w == nil || w.pod.UID != p.UID || !equality.Semantic.DeepEqual(w.pod.Spec, p.Spec) {
		s.queue.put(NewPod(p))
		return
	}
	w.pod.Pod = p
}
