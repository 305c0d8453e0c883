package nodes

import (
	"context"
	"log/slog"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DefaultGrace is how long a node may be silent.
const DefaultGrace = 40 * time.Second

// maxWriting is how many nodes are written at the same time, and retryAfter
// how long one waits after a write that failed.
const (
	maxWriting = 16
	retryAfter = time.Second
)

// maxLate is how late a deadline may be noticed. If it is later, this process
// stood still, and could hear nobody.
const maxLate = 5 * time.Second

// Cluster is where nodes and leases are read and nodes are written. It is safe
// for concurrent use.
type Cluster interface {
	// Follow calls f for every node, and every lease in kube-node-lease, that
	// there is, then once with Synced, then for each change, one call at a time.
	// It returns when ctx ends.
	Follow(ctx context.Context, f func(Event)) error
	// ChangeStatus and ChangeNode let change alter a fresh copy of a node, the
	// one its status and the other all else. change may be called several times.
	ChangeStatus(ctx context.Context, name string, change func(*corev1.Node)) error
	ChangeNode(ctx context.Context, name string, change func(*corev1.Node)) error
}

// Event is a change that Follow saw: a node or a lease as it is now, or as it
// was last when it is Deleted. They are shared and never changed.
type Event struct {
	Node    *corev1.Node
	Lease   *coordinationv1.Lease
	Deleted bool
	Synced  bool // neither: all that was there at the start has been told
}

// Recorder writes events for people. It does not block.
type Recorder interface {
	Event(about runtime.Object, kind, reason, message string)
}

// Config is what a Watcher needs. Grace and Log may be left out.
type Config struct {
	Cluster  Cluster
	Recorder Recorder
	Grace    time.Duration // default DefaultGrace
	Log      *slog.Logger
}

// Watcher keeps the nodes' conditions and taints in step with their leases. All
// fields are Run's goroutine's alone, but for the channel.
type Watcher struct {
	Config
	nodes     map[string]*node
	deadlines deadlines
	synced    bool
	writing   int
	waiting   []*node   // for one of maxWriting
	now       time.Time // when the present turn of the loop began
	workers   sync.WaitGroup
	written   chan outcome
	settled   chan struct{}
}

// New returns a Watcher, which does nothing before Run.
func New(c Config) *Watcher {
	if c.Grace == 0 {
		c.Grace = DefaultGrace
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Watcher{Config: c, nodes: make(map[string]*node), written: make(chan outcome), settled: make(chan struct{})}
}

// Settled is closed when no node is taken any more for what it was before this
// server started: pods should not be placed before.
func (w *Watcher) Settled() <-chan struct{} { return w.settled }

// Run watches until ctx ends, and returns nil then; another error is Follow's.
// It is called once.
func (w *Watcher) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer w.workers.Wait()
	defer cancel()
	events := make(chan Event, 256)
	failed := make(chan error, 1)
	w.workers.Go(func() {
		failed <- w.Cluster.Follow(ctx, func(e Event) {
			select {
			case events <- e:
			case <-ctx.Done():
			}
		})
	})
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if at, ok := w.deadlines.next(); ok {
			timer.Reset(time.Until(at))
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			if ctx.Err() != nil {
				return nil
			}
			return err
		case e := <-events:
			w.begin()
			w.happened(ctx, e)
		case o := <-w.written:
			w.begin()
			w.finish(ctx, o)
		case <-timer.C:
			w.begin()
			w.expire(ctx, events)
		}
		w.settle()
	}
}

// settle closes settled after the writes that the start made necessary.
func (w *Watcher) settle() {
	if !w.synced || w.writing > 0 || len(w.waiting) > 0 {
		return
	}
	select {
	case <-w.settled:
	default:
		close(w.settled)
	}
}

// begin takes the time for a turn of the loop. If that is late, nobody could be
// heard meanwhile.
func (w *Watcher) begin() {
	w.now = time.Now()
	at, ok := w.deadlines.next()
	if late := w.now.Sub(at); ok && late > maxLate {
		w.Log.Warn("this process stood still; the nodes get all their time anew", "seconds", int(late.Seconds()))
		for _, n := range w.nodes {
			n.since = w.now // of no effect on those that are lost
		}
	}
}

// expire judges the nodes whose deadline has come. What was told meanwhile is
// heard first.
func (w *Watcher) expire(ctx context.Context, events <-chan Event) {
	for len(events) > 0 {
		w.happened(ctx, <-events)
	}
	for {
		n := w.deadlines.pop(w.now)
		if n == nil {
			return
		}
		w.reconcile(ctx, n)
	}
}
