package store

import "context"

// watchBatch is how many events Next returns at most.
const watchBatch = 100

// Watcher reads one resource's events in order. It is a position in the log and
// holds nothing else: it needs no closing, and one that is not read costs
// nothing and slows nobody. It is for one goroutine.
type Watcher struct {
	store    *Store
	resource string
	rev      uint64 // all up to here was returned
}

// Watch returns a watcher of the events of resource after revision from. It
// fails with ErrCompact if some of them are no longer remembered, which is so
// for each revision of an earlier Open, and with ErrFuture if from was never
// handed out.
func (s *Store) Watch(resource string, from uint64) (*Watcher, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if from > s.rev {
		return nil, ErrFuture
	}
	if from < s.table(resource).floor {
		return nil, ErrCompact
	}
	return &Watcher{store: s, resource: resource, rev: from}, nil
}

// Next blocks until there are events, and returns some of them, oldest first.
// It fails with ErrCompact when the watcher was so slow that events it has not
// seen are forgotten (list again), with ErrClosed when the store is closed, and
// with ctx's error. The events are shared with other watchers.
func (w *Watcher) Next(ctx context.Context) ([]*Event, error) {
	for {
		events, err := w.Ready()
		if err != nil || len(events) > 0 {
			return events, err
		}
		if err := w.Wait(ctx); err != nil {
			return nil, err
		}
	}
}

// Ready is Next without waiting: there may be no events.
func (w *Watcher) Ready() ([]*Event, error) {
	w.store.mu.RLock()
	defer w.store.mu.RUnlock()
	events, err := w.store.tables[w.resource].after(w.rev, watchBatch)
	if n := len(events); n > 0 {
		w.rev = events[n-1].Rev
	} else if err == nil && w.store.isClosing() {
		err = ErrClosed
	}
	return events, err
}

// Wait blocks until there is something for Ready to return, or fails with ctx's error.
func (w *Watcher) Wait(ctx context.Context) error {
	changed, ready := w.next()
	if ready {
		return nil
	}
	select {
	case <-changed:
	case <-w.store.closing:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Revision returns the revision up to which Next has returned every event of
// the resource: a watch from there misses none.
func (w *Watcher) Revision() uint64 { return w.rev }

// next returns what is closed by the next event, and whether there is one already.
func (w *Watcher) next() (changed <-chan struct{}, ready bool) {
	w.store.mu.RLock()
	defer w.store.mu.RUnlock()
	t := w.store.tables[w.resource]
	return t.changed, t.last() > w.rev
}

func (s *Store) isClosing() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}
