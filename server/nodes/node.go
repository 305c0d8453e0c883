package nodes

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// node is what the Watcher knows of one node.
type node struct {
	name    string
	object  *corev1.Node // as it was seen last; nil: only its lease was seen
	renewal string       // the lease's resourceVersion that was seen last
	heard   bool         // since this server started
	since   time.Time    // monotonic: when it was heard last, or else first seen
	lost    bool         // it was not heard for the grace period
	young   bool         // it was created while this server ran
	told    verdict      // what people were told last

	deadline time.Time // of deadlines
	index    int       // in deadlines; -1: not in it

	writing, waiting bool
	written          string // the object's resourceVersion that the last write began with
}

// verdict is what people are told of a node.
type verdict uint8

const (
	nothing verdict = iota
	isReady
	notReady
)

// outcome is what became of a write.
type outcome struct {
	node *node
	err  error
}

// hearing judges n at that time, after that grace period.
func (n *node) hearing(now time.Time, grace time.Duration) hearing {
	n.lost = n.lost || now.Sub(n.since) >= grace
	switch {
	case n.lost:
		return lost
	case n.heard:
		return heard
	case n.young:
		return young
	}
	return silent
}

func (w *Watcher) happened(ctx context.Context, e Event) {
	switch {
	case e.Synced:
		w.synced = true
		for _, n := range w.nodes {
			w.reconcile(ctx, n)
		}
		return
	case e.Lease != nil && e.Deleted:
		return
	case e.Lease != nil:
		n := w.node(e.Lease.Name)
		if n.renewal == e.Lease.ResourceVersion {
			return // told again
		}
		n.renewal = e.Lease.ResourceVersion
		w.hear(ctx, n)
	case e.Deleted:
		if n := w.nodes[e.Node.Name]; n != nil {
			w.deadlines.remove(n)
			delete(w.nodes, n.name)
		}
	default:
		w.put(ctx, e.Node)
	}
}

// put takes over a node's new state. When its Ready condition was written by
// another, that was the node itself, and it was heard.
func (w *Watcher) put(ctx context.Context, object *corev1.Node) {
	n := w.node(object.Name)
	old := n.object
	n.object = object
	if old == nil {
		n.young = w.synced
	}
	if r := ready(object); w.synced && old != nil && r != corev1.ConditionUnknown && r != ready(old) {
		n.heard, n.lost, n.since = true, false, w.now
	}
	w.reconcile(ctx, n)
}

// node returns what is known of a node, from now on at least its name.
func (w *Watcher) node(name string) *node {
	n := w.nodes[name]
	if n == nil {
		n = &node{name: name, since: w.now, index: -1}
		w.nodes[name] = n
	}
	return n
}

// hear notes that n was heard by its lease. That is all, unless it was not
// heard before.
func (w *Watcher) hear(ctx context.Context, n *node) {
	was := n.hearing(w.now, w.Grace)
	n.heard, n.lost, n.since = true, false, w.now
	if was != heard || n.index < 0 {
		w.reconcile(ctx, n)
	}
}

// reconcile has written what is not as it should be, one write at a time; each
// comes back as an event, which leads here again.
func (w *Watcher) reconcile(ctx context.Context, n *node) {
	if !w.synced {
		return
	}
	h := n.hearing(w.now, w.Grace)
	if h != lost {
		w.deadlines.set(n, n.since.Add(w.Grace))
	}
	if n.object == nil { // a lease without a node
		if h == lost {
			delete(w.nodes, n.name)
		}
		return
	}
	w.tell(n, h)
	if n.writing {
		return
	}
	seen, now := n.object, metav1.Now()
	switch {
	case mustBeUnknown(seen, h):
		w.write(ctx, n, func() error {
			return w.Cluster.ChangeStatus(ctx, n.name, func(fresh *corev1.Node) {
				if fresh.ResourceVersion == seen.ResourceVersion { // else it may have reported
					setUnknown(fresh, now)
				}
			})
		})
	case !sameTaints(seen.Spec.Taints, wantedTaints(seen, h, now)):
		w.write(ctx, n, func() error {
			return w.Cluster.ChangeNode(ctx, n.name, func(fresh *corev1.Node) {
				fresh.Spec.Taints = wantedTaints(fresh, h, now)
			})
		})
	}
}

// tell tells people when a node comes or goes. After a start of the server
// that is only those that stay away.
func (w *Watcher) tell(n *node, h hearing) {
	v := nothing
	switch r := ready(n.object); {
	case h == lost, h == heard && r == corev1.ConditionFalse:
		v = notReady
	case h == heard && r == corev1.ConditionTrue:
		v = isReady
	}
	if v == nothing || v == n.told {
		return
	}
	first := n.told == nothing
	n.told = v
	switch {
	case v == notReady:
		w.Recorder.Event(n.object, corev1.EventTypeNormal, "NodeNotReady", "Node "+n.name+" status is now: NodeNotReady")
		w.Log.Info("node is not ready", "node", n.name, "heard", n.heard)
	case !first || n.young:
		w.Recorder.Event(n.object, corev1.EventTypeNormal, "NodeReady", "Node "+n.name+" status is now: NodeReady")
		w.Log.Info("node is ready", "node", n.name)
	}
}

// write runs do on a goroutine of its own, or lets n wait for its turn.
func (w *Watcher) write(ctx context.Context, n *node, do func() error) {
	if w.writing >= maxWriting {
		if !n.waiting {
			n.waiting = true
			w.waiting = append(w.waiting, n)
		}
		return
	}
	w.writing++
	n.writing, n.written = true, n.object.ResourceVersion
	w.workers.Go(func() {
		o := outcome{n, do()}
		select {
		case w.written <- o:
		case <-ctx.Done():
		}
	})
}

func (w *Watcher) finish(ctx context.Context, o outcome) {
	w.writing--
	n := o.node
	n.writing = false
	if o.err != nil && !apierrors.IsNotFound(o.err) {
		w.Log.Warn("cannot write the state of a node", "node", n.name, "err", o.err)
	}
	switch {
	case w.nodes[n.name] != n: // deleted
	case o.err == nil && n.object.ResourceVersion != n.written:
		w.reconcile(ctx, n) // the write was seen already
	default:
		w.deadlines.set(n, w.now.Add(retryAfter))
	}
	if len(w.waiting) > 0 {
		next := w.waiting[0]
		w.waiting = w.waiting[1:]
		next.waiting = false
		if w.nodes[next.name] == next {
			w.reconcile(ctx, next)
		}
	}
}
