package scheduler

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// How long a pod that fitted nowhere is left alone, though something happened
// that could help it: this for the first time, then twice as long each time.
const (
	firstBackoff = time.Second
	maxBackoff   = 10 * time.Second
)

// waiter is a pod that has no node yet.
type waiter struct {
	pod     *Pod
	arrived int       // the order of arrival
	tries   int       // how often it fitted nowhere, or could not be bound
	ready   bool      // to be tried; else it waits for a cause
	after   time.Time // but not before
	failed  []string  // the filters that kept it from all nodes, at the last try
	said    string    // the last message to people
}

// queue holds the pods without a node. It is not safe for concurrent use.
type queue struct {
	waiters  map[types.NamespacedName]*waiter
	arrivals int
}

func newQueue() *queue {
	return &queue{waiters: make(map[types.NamespacedName]*waiter)}
}

// put adds a pod, to be tried now, or takes over its new state.
func (q *queue) put(p *Pod) {
	w, known := q.waiters[key(p.Pod)]
	if !known || w.pod.UID != p.UID {
		q.arrivals++
		w = &waiter{arrived: q.arrivals}
		q.waiters[key(p.Pod)] = w
	}
	w.pod, w.ready = p, true
}

// restore takes w back, as it was when it was dropped.
func (q *queue) restore(w *waiter) { q.waiters[w.pod.key()] = w }

func (q *queue) get(k types.NamespacedName) *waiter { return q.waiters[k] }

func (q *queue) drop(k types.NamespacedName) { delete(q.waiters, k) }

// failedAt lets w wait for a cause that cures one of the filters.
func (q *queue) failedAt(w *waiter, filters []string, now time.Time) {
	w.back(now)
	w.ready, w.failed = false, filters
}

// retry lets w be tried again after a while, without any cause.
func (q *queue) retry(w *waiter, now time.Time) {
	w.back(now)
	w.ready = true
}

func (w *waiter) back(now time.Time) {
	w.tries++
	backoff := maxBackoff
	if shift := w.tries - 1; shift < 4 {
		backoff = min(firstBackoff<<shift, maxBackoff)
	}
	w.after = now.Add(backoff)
}

// happened makes ready whom c could help; cures says whether it cures a filter.
func (q *queue) happened(c Cause, cures func(filter string, c Cause) bool) {
	for _, w := range q.waiters {
		if w.ready {
			continue
		}
		// With no node there was no filter to fail at.
		w.ready = len(w.failed) == 0 && c == NodeCame ||
			slices.ContainsFunc(w.failed, func(f string) bool { return cures(f, c) })
	}
}

// next returns whom to try now, the highest priority first and then the first
// to come; or nil, and when there will be one (zero: only after a cause).
func (q *queue) next(now time.Time) (w *waiter, at time.Time) {
	for _, c := range q.waiters {
		switch {
		case !c.ready:
		case c.after.After(now):
			if at.IsZero() || c.after.Before(at) {
				at = c.after
			}
		case w == nil || before(c, w):
			w = c
		}
	}
	return w, at
}

func before(a, b *waiter) bool {
	return cmp.Or(
		cmp.Compare(b.pod.Priority, a.pod.Priority),
		cmp.Compare(a.arrived, b.arrived),
	) < 0
}
