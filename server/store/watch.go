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
// with ctx's error.
func (w *Watcher) Next(ctx context.Context) ([]Event, error) {
	for {
		events, changed, err := w.read()
		if err != nil || len(events) > 0 {
			return events, err
		}
		select {
		case <-changed:
		case <-w.store.closing:
			return nil, ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Revision returns the revision up to which Next has returned every event of
// the resource: a watch from there misses none.
func (w *Watcher) Revision() uint64 { return w.rev }

func (w *Watcher) read() ([]Event, <-chan struct{}, error) {
	w.store.mu.RLock()
	defer w.store.mu.RUnlock()
	t := w.store.tables[w.resource]
	events, err := t.after(w.rev, watchBatch)
	if n := len(events); n > 0 {
		w.rev = events[n-1].Rev
	}
	return events, t.changed, err
}
