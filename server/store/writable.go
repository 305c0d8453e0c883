package store

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// trialBytes is what a trial writes: small enough for a bad disk, large enough
// not to fit into what a full one has left over.
const trialBytes = 64 << 10

// trialEvery is how often there is one at most.
const trialEvery = time.Second

// health is what the store knows of its disk: how the last transaction ended
// and, while that was badly, how the last trial did.
type health struct {
	mu    sync.Mutex // protects both
	err   error
	tried time.Time // monotonic
}

// note keeps how a transaction ended.
func (h *health) note(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
}

// doubtful returns why the last transaction failed, and whether it is time for
// a trial.
func (h *health) doubtful() (err error, due bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil || !h.tried.IsZero() && time.Since(h.tried) < trialEvery {
		return h.err, false
	}
	h.tried = time.Now()
	return h.err, true
}

// Writable says why the store cannot write to its disk, or nil. While all goes
// well that costs nothing; after a transaction that failed it tries one of its
// own, at most once in a second.
func (s *Store) Writable(ctx context.Context) error {
	err, due := s.health.doubtful()
	if due {
		_, err = s.send(ctx, &request{trial: true, done: make(chan struct{})})
	}
	if err != nil {
		return fmt.Errorf("cannot write to the disk: %w", err)
	}
	return nil
}

// try writes something and takes it back.
func (d *database) try() error {
	err := d.transact(func() error {
		return d.exec("INSERT OR REPLACE INTO meta VALUES ('trial', zeroblob(?))", trialBytes)
	})
	if err != nil {
		return err
	}
	return d.transact(func() error { return d.exec("DELETE FROM meta WHERE name = 'trial'") })
}
