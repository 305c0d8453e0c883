package store_test

import (
	"errors"
	"sync"
	"testing"

	"bramble.dev/bramble/server/store"
)

func TestNothingOfThePastWhereNobodyWatches(t *testing.T) {
	s, err := store.Open(t.Context(), store.Config{Dir: t.TempDir(), Unwatched: []string{"pods"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	start := s.Revision()
	rev := put(t, s, "a", 0)
	if _, err := s.Watch("pods", start); !errors.Is(err, store.ErrCompact) {
		t.Errorf("a watch of what was: %v", err)
	}
	if entries, _, err := s.List("pods", "", 0); err != nil || len(entries) != 1 || entries[0].Rev != rev {
		t.Errorf("the present: %+v, %v", entries, err)
	}
}

func TestWatchWindow(t *testing.T) {
	s := openWindow(t, t.TempDir(), store.Window{Events: 3, Bytes: 1 << 20})
	start := s.Revision()
	early, err := s.Watch("pods", start)
	if err != nil {
		t.Fatal(err)
	}
	a := put(t, s, "a", 0)
	a2 := put(t, s, "a", a)
	a3 := commit(t, s, store.Change{Key: key("a"), Rev: a2, Delete: true, Body: text("last")})
	got, err := early.Next(t.Context())
	if err != nil || len(got) != 3 {
		t.Fatal(got, err)
	}
	if got[0].Type != store.Added || got[0].Prev.Rev != 0 ||
		got[1].Type != store.Modified || got[1].Prev.Rev != a ||
		got[2].Type != store.Deleted || got[2].Rev != a3 || got[2].Prev.Rev != a2 {
		t.Errorf("got %+v", got)
	}
	if early.Revision() != a3 {
		t.Errorf("the watcher is at %d, not %d", early.Revision(), a3)
	}
	later, err := s.Watch("pods", a2)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := later.Next(t.Context()); err != nil || len(got) != 1 || got[0].Rev != a3 {
		t.Errorf("from %d: %+v, %v", a2, got, err)
	}
	put(t, s, "b", 0)
	if _, err := s.Watch("pods", start); !errors.Is(err, store.ErrCompact) {
		t.Errorf("what left the window: %v", err)
	}
	if _, err := s.Watch("pods", s.Revision()+1); !errors.Is(err, store.ErrFuture) {
		t.Errorf("the future: %v", err)
	}
	// Another resource's changes take nothing away, however many they are.
	if _, err := s.Watch("nodes", start); err != nil {
		t.Error(err)
	}
}

func TestWindowIsBoundedInBytes(t *testing.T) {
	s := openWindow(t, t.TempDir(), store.Window{Events: 1000, Bytes: 100})
	start := s.Revision()
	large := func(uint64) []byte { return make([]byte, 60) }
	a := commit(t, s, store.Change{Key: key("a"), Body: large})
	commit(t, s, store.Change{Key: key("b"), Body: large})
	if _, err := s.Watch("pods", start); !errors.Is(err, store.ErrCompact) {
		t.Errorf("two large bodies are remembered: %v", err)
	}
	if _, err := s.Watch("pods", a); err != nil {
		t.Errorf("one large body is not remembered: %v", err)
	}
	commit(t, s, store.Change{Key: key("c"), Body: func(uint64) []byte { return make([]byte, 200) }})
	if _, err := s.Watch("pods", s.Revision()); err != nil {
		t.Errorf("from now on: %v", err)
	}
}

func TestSlowWatcherIsCutOff(t *testing.T) {
	s := openWindow(t, t.TempDir(), store.Window{Events: 10, Bytes: 1 << 20})
	slow, err := s.Watch("leases", s.Revision())
	if err != nil {
		t.Fatal(err)
	}
	var rev uint64
	for range 11 { // never blocked by the watcher
		rev = commit(t, s, lease("n", rev))
	}
	if got, err := slow.Next(t.Context()); !errors.Is(err, store.ErrCompact) || len(got) != 0 {
		t.Errorf("got %d events, %v", len(got), err)
	}
}

// Many watchers under many writers: each sees every revision once, in order.
func TestWatchersSeeAllInOrder(t *testing.T) {
	s := openWindow(t, t.TempDir(), store.Window{Events: 10000, Bytes: 1 << 30})
	start := s.Revision()
	const writers, writes = 8, 50
	var wg sync.WaitGroup
	for range 5 {
		w, err := s.Watch("pods", start)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			next := start + 1
			for next <= start+writers*writes {
				events, err := w.Next(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				for _, e := range events {
					if e.Rev != next {
						t.Errorf("revision %d, want %d", e.Rev, next)
						return
					}
					next++
				}
			}
		})
	}
	for i := range writers {
		wg.Go(func() {
			name := string(rune('a' + i))
			var rev uint64
			for range writes {
				rev = put(t, s, name, rev)
			}
		})
	}
	wg.Wait()
}
