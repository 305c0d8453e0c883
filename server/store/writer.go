package store

import (
	"context"
	"fmt"
)

// maxBatch is how many commits share one transaction at most.
const maxBatch = 64

// request is one Commit on its way through the writer.
type request struct {
	changes []Change
	revs    []uint64
	err     error
	stale   bool // err is a conflict with another request of the same batch
	trial   bool // only see whether the disk takes something
	done    chan struct{}
}

// Commit makes all changes, or none, and returns the revision of each (of a
// Check, 0). It blocks until durable changes are on disk. It fails with
// ErrConflict if a Change.Rev did not hold, with ErrClosed, with ctx's error
// (the changes may then be made all the same) or with what the disk said;
// nothing is published then, and later commits may succeed.
func (s *Store) Commit(ctx context.Context, changes ...Change) ([]uint64, error) {
	return s.send(ctx, &request{changes: changes, done: make(chan struct{})})
}

// send has the writer do r, and waits for it.
func (s *Store) send(ctx context.Context, r *request) ([]uint64, error) {
	select {
	case s.requests <- r:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.closing:
		return nil, ErrClosed
	}
	select {
	case <-r.done:
		return r.revs, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// write is the writer. It ends with Close.
func (s *Store) write() {
	cp := newCheckpointer(s.db)
	defer cp.timer.Stop()
	next := s.rev
	for {
		select {
		case r := <-s.requests:
			b := s.gather(r)
			next = s.commit(b, next)
			if b.durable {
				s.warn(cp.committed())
			}
		case <-cp.timer.C:
			s.warn(cp.run())
		case <-s.closing:
			return
		}
	}
}

// warn logs an error of a checkpoint: the log is then only longer for a while.
func (s *Store) warn(err error) {
	if err != nil {
		s.config.Log.Warn("cannot move the store's log into its file", "err", err)
	}
}

// gather takes the requests that wait behind first.
func (s *Store) gather(first *request) *batch {
	b := &batch{store: s, requests: []*request{first}, rows: map[Key]row{}}
	for len(b.requests) < maxBatch {
		select {
		case r := <-s.requests:
			b.requests = append(b.requests, r)
		default:
			return b
		}
	}
	return b
}

// commit takes b through plan, disk and publication, answers its requests and
// returns the newest revision that was handed to a Body. A revision that was
// handed out for a transaction that failed is not used again. When the disk
// refuses, what needs no disk is committed without the rest: leases are renewed
// while it is full.
func (s *Store) commit(b *batch, last uint64) uint64 {
	last = b.plan(last)
	err := b.persist(s.db)
	if err != nil || b.durable {
		s.health.note(err)
	}
	if err == nil {
		s.publish(b)
	} else if rest := b.splitVolatile(); len(rest.requests) > 0 {
		last = s.commit(rest, last)
	}
	var unwritable error
	if b.trial {
		unwritable = s.db.try()
		s.health.note(unwritable)
	}
	for _, r := range b.requests {
		if r.trial {
			r.err = unwritable
		} else if err != nil && (r.err == nil || r.stale) {
			r.revs, r.err = nil, fmt.Errorf("cannot write to the store: %w", ofDisk(err))
		}
		close(r.done)
	}
	return last
}

// publish makes b the current state and wakes the watchers.
func (s *Store) publish(b *batch) {
	if len(b.ops) == 0 {
		return
	}
	for _, op := range b.ops {
		op.Body.pack() // before anybody waits for the lock
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	woken := map[*table]bool{}
	for _, op := range b.ops {
		t := s.table(op.Resource)
		t.apply(op.Event, op.onDisk)
		s.rev = op.Rev
		woken[t] = true
	}
	for t := range woken {
		t.wake()
	}
}
