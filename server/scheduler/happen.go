package scheduler

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"bramble.dev/bramble/server/api"
)

// happened takes an event over into the snapshot and the queue.
func (s *Scheduler) happened(e Event) {
	switch {
	case e.Synced:
		s.synced = true
	case e.Namespace != nil:
		s.putNamespace(e.Namespace, e.Deleted)
	case e.Hardware != nil:
		s.putHardware(e.Hardware, e.Deleted)
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

// putNamespace matters to terms that select namespaces by their labels.
func (s *Scheduler) putNamespace(n *corev1.Namespace, deleted bool) {
	if deleted {
		s.snapshot.DeleteNamespace(n.Name)
		return
	}
	if was, known := s.snapshot.namespaceLabels[n.Name]; !known || !maps.Equal(was, n.Labels) {
		s.snapshot.PutNamespace(n)
		s.cause(NamespaceChanged)
	}
}

// putHardware matters to pods that wait when what is wrong with the board changes.
func (s *Scheduler) putHardware(h *api.NodeHardware, deleted bool) {
	if deleted {
		h = &api.NodeHardware{ObjectMeta: h.ObjectMeta}
	}
	if s.snapshot.PutHardware(h, time.Now()) {
		s.cause(BoardChanged)
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
	delete(s.ended, k)
	s.why.drop(k)
	s.leave(k)
}

// leave takes a pod off its node, or off the one that was to be its.
func (s *Scheduler) leave(k types.NamespacedName) {
	nominated := s.snapshot.DeleteNominated(k)
	if s.snapshot.DeletePod(k) || nominated {
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
		s.leave(k)
	case p.Spec.NodeName != "":
		s.queue.drop(k)
		delete(s.binding, k)
		s.snapshot.DeleteNominated(k)
		s.putPlaced(p)
	case s.binding[k] != nil: // older than the binding, unless that fails
		s.binding[k].pod = NewPod(p)
	case p.DeletionTimestamp != nil || p.Spec.SchedulerName != corev1.DefaultSchedulerName || len(p.Spec.SchedulingGates) > 0:
		s.queue.drop(k)
		s.leave(k)
	default:
		s.putWaiter(p)
	}
}

// putPlaced counts a pod that has a node. What it is to others changes with its
// labels, and when it begins to leave.
func (s *Scheduler) putPlaced(p *corev1.Pod) {
	was := s.snapshot.pods[key(p)]
	s.snapshot.PutPod(p)
	if was == nil || was.UID != p.UID || !maps.Equal(was.Labels, p.Labels) ||
		(was.DeletionTimestamp != nil) != (p.DeletionTimestamp != nil) {
		s.cause(PodCame)
	}
}

// putWaiter lets p be tried, unless nothing of it changed that matters.
func (s *Scheduler) putWaiter(p *corev1.Pod) {
	w := s.queue.get(key(p))
	known := w != nil && w.pod.UID == p.UID
	if known && maps.Equal(w.pod.Labels, p.Labels) && equality.Semantic.DeepEqual(w.pod.Spec, p.Spec) {
		w.pod.Pod = p
		return
	}
	if !known && w != nil {
		s.leave(key(p))
	}
	pod := NewPod(p)
	s.queue.put(pod)
	at := s.snapshot.Nominated(key(p))
	if !known {
		at = p.Status.NominatedNodeName // by this server, before it was started
	}
	if at != "" {
		s.snapshot.Nominate(pod, at)
	}
}
