package eviction

import (
	"context"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// maxEvicting is how many pods are evicted at the same time, and retryAfter how
// long one waits after an eviction that failed.
const (
	maxEvicting = 16
	retryAfter  = time.Second
)

// Cluster deletes pods with their grace periods, and marks them as disrupted. It
// is safe for concurrent use. A pod that is gone is no error.
type Cluster interface {
	Evict(ctx context.Context, pod *corev1.Pod) error
}

// Recorder writes events for people. It does not block.
type Recorder interface {
	Event(about runtime.Object, kind, reason, message string)
}

// Config is what an Evictor needs.
type Config struct {
	Cluster  Cluster
	Recorder Recorder
	Log      *slog.Logger
}

// Evictor evicts pods while Run runs. It is safe for concurrent use.
type Evictor struct {
	Config
	turns   chan struct{} // as many as are evicted at the same time
	workers sync.WaitGroup

	mu     sync.Mutex      // protects all below
	ctx    context.Context // nil: Run does not run, and no time counts
	taints map[string][]corev1.Taint
	pods   map[string]map[types.UID]*guest // by node
}

// guest is a pod on a node.
type guest struct {
	pod   *corev1.Pod
	since time.Time   // monotonic: when its time began to count; zero: it does not
	due   time.Time   // when the timer ends
	timer *time.Timer // nil: it may stay
}

// New returns an Evictor that takes notes and evicts nothing until Run.
func New(c Config) *Evictor {
	return &Evictor{
		Config: c, turns: make(chan struct{}, maxEvicting),
		taints: map[string][]corev1.Taint{}, pods: map[string]map[types.UID]*guest{},
	}
}

// Node notes a node as it is now, or that it is gone. It is not changed.
func (e *Evictor) Node(n *corev1.Node, gone bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.taints, n.Name)
	if !gone && len(n.Spec.Taints) > 0 {
		e.taints[n.Name] = n.Spec.Taints
	}
	for _, g := range e.pods[n.Name] {
		e.judge(g)
	}
}

// Pod notes a pod as it is now, or that it is gone. It is not changed.
func (e *Evictor) Pod(p *corev1.Pod, gone bool) {
	node := p.Spec.NodeName
	if node == "" {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.pods[node][p.UID]
	switch {
	case gone:
		if g == nil {
			return
		}
		g.stop()
		if delete(e.pods[node], p.UID); len(e.pods[node]) == 0 {
			delete(e.pods, node)
		}
		return
	case g == nil:
		g = &guest{}
		if e.pods[node] == nil {
			e.pods[node] = map[types.UID]*guest{}
		}
		e.pods[node][p.UID] = g
	}
	g.pod = p
	e.judge(g)
}

// Run evicts until ctx ends, and returns nil then. It is called once.
func (e *Evictor) Run(ctx context.Context) error {
	e.mu.Lock()
	e.ctx = ctx
	for _, guests := range e.pods {
		for _, g := range guests {
			e.judge(g)
		}
	}
	e.mu.Unlock()
	<-ctx.Done()
	e.mu.Lock()
	e.ctx = nil
	for _, guests := range e.pods {
		for _, g := range guests {
			g.stop()
		}
	}
	e.mu.Unlock()
	e.workers.Wait()
	return nil
}

// judge sets the timer of a pod by the taints of its node. e.mu is held.
func (e *Evictor) judge(g *guest) {
	if e.ctx == nil {
		return
	}
	left := forever
	if g.pod.DeletionTimestamp == nil && !over(g.pod) {
		left = patience(g.pod, e.taints[g.pod.Spec.NodeName])
	}
	if left == forever {
		if g.timer != nil && g.pod.DeletionTimestamp == nil {
			e.Recorder.Event(g.pod, corev1.EventTypeNormal, "TaintManagerEviction", "Cancelling deletion of Pod "+name(g.pod))
		}
		g.stop()
		return
	}
	if g.since.IsZero() {
		g.since = time.Now()
	}
	if due := g.since.Add(left); g.timer == nil || !due.Equal(g.due) {
		e.arm(g, due)
	}
}

// arm has a pod evicted at that time. e.mu is held.
func (e *Evictor) arm(g *guest, due time.Time) {
	if g.timer != nil {
		g.timer.Stop()
	}
	ctx := e.ctx
	g.due = due
	var timer *time.Timer
	timer = time.AfterFunc(time.Until(due), func() {
		e.mu.Lock()
		pod, current := g.pod, g.timer == timer && e.ctx != nil
		if current {
			e.workers.Add(1)
		}
		e.mu.Unlock()
		if current {
			defer e.workers.Done()
			e.evict(ctx, g, pod)
		}
	})
	g.timer = timer
}

// evict ends a pod, or comes back to it.
func (e *Evictor) evict(ctx context.Context, g *guest, pod *corev1.Pod) {
	select {
	case e.turns <- struct{}{}:
		defer func() { <-e.turns }()
	case <-ctx.Done():
		return
	}
	e.Recorder.Event(pod, corev1.EventTypeNormal, "TaintManagerEviction", "Marking for deletion Pod "+name(pod))
	err := e.Cluster.Evict(ctx, pod)
	if err == nil || ctx.Err() != nil {
		return
	}
	e.Log.Warn("cannot evict a pod yet", "pod", name(pod), "node", pod.Spec.NodeName, "err", err)
	e.mu.Lock()
	defer e.mu.Unlock()
	if g.timer != nil && e.ctx != nil {
		e.arm(g, time.Now().Add(retryAfter))
	}
}

func (g *guest) stop() {
	if g.timer != nil {
		g.timer.Stop()
	}
	g.timer, g.since = nil, time.Time{}
}

func over(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func name(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }
