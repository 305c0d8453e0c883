package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"bramble.dev/bramble/server/store"
)

// While one commit holds the writer, those that come wait together and then
// share a transaction: all of it is there or none.
func TestGroupCommit(t *testing.T) {
	s := open(t, t.TempDir())
	held, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		commit(t, s, store.Change{Key: key("first"), Volatile: true, Body: func(uint64) []byte {
			close(held)
			<-release
			return []byte("x")
		}})
	})
	<-held
	before, err := s.LogBytes()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		wg.Go(func() { put(t, s, fmt.Sprint("p", i), 0) })
	}
	release <- struct{}{}
	wg.Wait()
	after, err := s.LogBytes()
	if err != nil {
		t.Fatal(err)
	}
	// Alone, each would write three pages at least.
	if pages := (after - before) / 4096; pages > 60 {
		t.Errorf("40 commits wrote %d pages", pages)
	}
}

// Of commits in one batch that exclude one another, one is made.
func TestConflictWithinABatch(t *testing.T) {
	s := open(t, t.TempDir())
	for round := range 20 {
		var wg sync.WaitGroup
		var mu sync.Mutex
		made, refused := 0, 0
		for range 8 {
			wg.Go(func() {
				_, err := s.Commit(t.Context(), store.Change{Key: key(fmt.Sprint("p", round)), Body: text("x")})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					made++
				case errors.Is(err, store.ErrConflict):
					refused++
				}
			})
		}
		wg.Wait()
		if made != 1 || refused != 7 {
			t.Fatalf("%d made, %d refused", made, refused)
		}
	}
}

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	a := put(t, s, "a", 0)
	w, err := s.Watch("pods", a)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.LimitPages(2); err != nil {
		t.Fatal(err)
	}
	large := func(uint64) []byte { return bytes.Repeat([]byte("x"), 100_000) }
	_, err = s.Commit(t.Context(), store.Change{Key: key("b"), Body: large})
	if err == nil || errors.Is(err, store.ErrConflict) || !strings.Contains(err.Error(), "full") {
		t.Fatalf("got %v", err)
	}
	if e, ok := s.Get(key("a")); !ok || e.Rev != a {
		t.Errorf("reading: %+v, %v", e, ok)
	}
	if _, ok := s.Get(key("b")); ok || s.Revision() != a {
		t.Errorf("something was published: revision %d after %d", s.Revision(), a)
	}
	if commit(t, s, lease("n", 0)) == 0 {
		t.Error("a volatile change needs the disk")
	}
	if err := s.Writable(t.Context()); err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("a full disk is writable: %v", err)
	}
	if err := s.LimitPages(1000); err != nil {
		t.Fatal(err)
	}
	s.ForgetTrial()
	if err := s.Writable(t.Context()); err != nil {
		t.Errorf("there is space again: %v", err)
	}
	b := commit(t, s, store.Change{Key: key("b"), Body: large})
	events, err := w.Next(t.Context())
	if err != nil || len(events) != 1 || events[0].Rev != b {
		t.Errorf("the watcher sees %d events, %v", len(events), err)
	}
	s.Close()
	if _, ok := open(t, dir).Get(key("b")); !ok {
		t.Error("the commit after the full disk is lost")
	}
	integrity(t, dir)
}

func TestCommitOfACancelledContext(t *testing.T) {
	s := open(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// Which way it goes is open; that it comes back is not.
	if _, err := s.Commit(ctx, store.Change{Key: key("a"), Body: text("a")}); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := s.Commit(t.Context(), store.Change{Key: key("b"), Body: text("b")}); err != nil {
		t.Error(err)
	}
}

// The log is moved into the file when it has grown, without a pause for that.
func TestLogIsBounded(t *testing.T) {
	s := open(t, t.TempDir())
	var rev uint64
	for i := range 40 {
		rev = commit(t, s, store.Change{Key: key("a"), Rev: rev, Body: func(uint64) []byte {
			return bytes.Repeat([]byte{byte('a' + i)}, 1<<20)
		}})
		if n, err := s.LogBytes(); err != nil || n > 9<<20 {
			t.Fatalf("%d bytes of log, %v", n, err)
		}
	}
}

func BenchmarkCommit(b *testing.B) {
	body := bytes.Repeat([]byte("x"), 2500)
	for _, writers := range []int{1, 16} {
		b.Run(fmt.Sprint("writers=", writers), func(b *testing.B) {
			s := open(b, b.TempDir())
			var wg sync.WaitGroup
			jobs := make(chan struct{})
			for w := range writers {
				wg.Go(func() {
					revs := map[string]uint64{}
					for n := 0; ; n++ {
						if _, ok := <-jobs; !ok {
							return
						}
						name := fmt.Sprint(w, "-", n%50)
						got, err := s.Commit(b.Context(), store.Change{Key: key(name), Rev: revs[name], Body: func(uint64) []byte { return body }})
						if err != nil {
							b.Error(err)
							return
						}
						revs[name] = got[0]
					}
				})
			}
			for b.Loop() {
				jobs <- struct{}{}
			}
			close(jobs)
			wg.Wait()
		})
	}
}

// TestLeasesAreRenewedWhileTheDiskIsFull holds that a volatile change that
// shares its batch with durable ones does not fail with them.
func TestLeasesAreRenewedWhileTheDiskIsFull(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.LimitPages(2); err != nil {
		t.Fatal(err)
	}
	large := func(uint64) []byte { return bytes.Repeat([]byte("x"), 100_000) }
	const writers, rounds = 8, 50
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for range rounds {
				if _, err := s.Commit(t.Context(), store.Change{Key: key(fmt.Sprint("big", i)), Body: large}); err == nil {
					t.Error("a full disk took a durable change")
				}
			}
		})
		wg.Go(func() {
			rev := uint64(0)
			for range rounds {
				revs, err := s.Commit(t.Context(), lease(fmt.Sprint("n", i), rev))
				if err != nil {
					t.Errorf("a lease fails with the disk: %v", err)
					return
				}
				rev = revs[0]
			}
		})
	}
	wg.Wait()
}
