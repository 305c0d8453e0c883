package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bramble.dev/bramble/server/store"
)

func open(t testing.TB, dir string) *store.Store {
	t.Helper()
	return openWindow(t, dir, store.Window{})
}

func openWindow(t testing.TB, dir string, w store.Window) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{Dir: dir, Window: w})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// text makes a body of a string and the revision.
func text(value string) func(uint64) []byte {
	return func(rev uint64) []byte { return fmt.Appendf(nil, "%s@%d", value, rev) }
}

func key(name string) store.Key { return store.Key{Resource: "pods", Namespace: "ns", Name: name} }

func put(t testing.TB, s *store.Store, name string, rev uint64) uint64 {
	t.Helper()
	return commit(t, s, store.Change{Key: key(name), Rev: rev, Body: text(name)})
}

func commit(t testing.TB, s *store.Store, changes ...store.Change) uint64 {
	t.Helper()
	revs, err := s.Commit(t.Context(), changes...)
	if err != nil {
		t.Fatal(err)
	}
	return revs[len(revs)-1]
}

func TestCommitAndRead(t *testing.T) {
	s := open(t, t.TempDir())
	a := put(t, s, "a", 0)
	b := put(t, s, "b", 0)
	a2 := put(t, s, "a", a)
	got, ok := s.Get(key("a"))
	if !ok || got.Rev != a2 || string(got.Body.Bytes()) != fmt.Sprintf("a@%d", a2) {
		t.Errorf("Get returns %+v, %v", got, ok)
	}
	entries, rev, err := s.List("pods", "", 0)
	if err != nil || rev != a2 || len(entries) != 2 || entries[1].Rev != b {
		t.Errorf("List returns %+v, %d, %v", entries, rev, err)
	}
	commit(t, s, store.Change{Key: key("a"), Rev: a2, Delete: true, Body: text("last")})
	if _, ok := s.Get(key("a")); ok {
		t.Error("a deleted object is there")
	}
	if s.Revision() != a2+1 {
		t.Errorf("revision is %d after %d", s.Revision(), a2)
	}
}

func TestConflicts(t *testing.T) {
	s := open(t, t.TempDir())
	a := put(t, s, "a", 0)
	for name, changes := range map[string][]store.Change{
		"it exists":          {{Key: key("a"), Body: text("x")}},
		"it does not":        {{Key: key("b"), Rev: a, Body: text("x")}},
		"stale":              {{Key: key("a"), Rev: a - 1, Body: text("x")}},
		"delete of nothing":  {{Key: key("b"), Delete: true, Body: text("x")}},
		"stale delete":       {{Key: key("a"), Rev: a + 1, Delete: true, Body: text("x")}},
		"check":              {{Key: key("b"), Body: text("x")}, {Key: key("a"), Rev: a + 1, Check: true}},
		"one of two":         {{Key: key("b"), Body: text("x")}, {Key: key("a"), Body: text("x")}},
		"one twice":          {{Key: key("b"), Body: text("x")}, {Key: key("b"), Body: text("x")}},
		"check of something": {{Key: key("b"), Body: text("x")}, {Key: key("a"), Check: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := s.Commit(t.Context(), changes...); !errors.Is(err, store.ErrConflict) {
				t.Errorf("got %v", err)
			}
			if _, ok := s.Get(key("b")); ok {
				t.Error("a part of it was written")
			}
		})
	}
	commit(t, s, store.Change{Key: key("none"), Check: true}, store.Change{Key: key("a"), Rev: a, Check: true}, store.Change{Key: key("b"), Body: text("x")})
}

func TestReopenKeepsStateAndRaisesRevisions(t *testing.T) {
	dir := t.TempDir()
	var last uint64
	var epoch string
	for i := range 3 {
		s := open(t, dir)
		if s.Revision() <= last || s.Revision()>>32 != uint64(i+1) {
			t.Fatalf("start %d is at revision %d after %d", i, s.Revision(), last)
		}
		if epoch == "" {
			epoch = s.Epoch()
		}
		if s.Epoch() != epoch || len(epoch) != 36 {
			t.Errorf("epoch %q became %q", epoch, s.Epoch())
		}
		entries, _, err := s.List("pods", "ns", 0)
		if err != nil || len(entries) != i {
			t.Errorf("%d entries at start %d, %v", len(entries), i, err)
		}
		for _, old := range []uint64{1, last} {
			if old == 0 {
				continue
			}
			if _, err := s.Watch("pods", old); !errors.Is(err, store.ErrCompact) {
				t.Errorf("a watch from %d of an earlier run: %v", old, err)
			}
			if _, _, err := s.List("pods", "", old); !errors.Is(err, store.ErrCompact) {
				t.Errorf("a list at %d of an earlier run: %v", old, err)
			}
			if _, _, err := s.List("nothing", "", old); !errors.Is(err, store.ErrCompact) {
				t.Errorf("an empty list at %d of an earlier run: %v", old, err)
			}
		}
		last = put(t, s, fmt.Sprint("p", i), 0)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestListInThePast(t *testing.T) {
	s := openWindow(t, t.TempDir(), store.Window{Events: 4, Bytes: 1 << 20})
	var revs []uint64
	var states [][]store.Entry
	remember := func(rev uint64) {
		entries, at, err := s.List("pods", "", 0)
		if err != nil || at != rev {
			t.Fatalf("list at %d, want %d: %v", at, rev, err)
		}
		revs, states = append(revs, rev), append(states, entries)
	}
	remember(s.Revision())
	a := put(t, s, "a", 0)
	remember(a)
	remember(put(t, s, "b", 0))
	a = put(t, s, "a", a)
	remember(a)
	remember(commit(t, s, store.Change{Key: key("a"), Rev: a, Delete: true, Body: text("")}))
	for i, rev := range revs {
		got, at, err := s.List("pods", "ns", rev)
		if err != nil || at != rev {
			t.Fatal(at, err)
		}
		if diff := cmp.Diff(states[i], got, cmpopts.EquateEmpty(), cmpopts.IgnoreTypes(&store.Memo{}), cmp.Comparer(sameBody)); diff != "" {
			t.Errorf("at %d: %s", rev, diff)
		}
	}
	put(t, s, "c", 0)
	if _, _, err := s.List("pods", "", revs[0]); !errors.Is(err, store.ErrCompact) {
		t.Errorf("what left the window: %v", err)
	}
	if _, _, err := s.List("pods", "", revs[1]); err != nil {
		t.Errorf("what is just within the window: %v", err)
	}
	if _, _, err := s.List("pods", "", s.Revision()+1); !errors.Is(err, store.ErrFuture) {
		t.Errorf("the future: %v", err)
	}
}

func TestOneProcessAtATime(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	_, err := store.Open(t.Context(), store.Config{Dir: dir})
	if !errors.Is(err, store.ErrInUse) || !strings.Contains(err.Error(), fmt.Sprint("pid ", os.Getpid())) {
		t.Errorf("got %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
}

func TestModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := open(t, dir)
	put(t, s, "a", 0)
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory: %v, %v", info.Mode(), err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
		}
	}
}

func TestClosed(t *testing.T) {
	s := open(t, t.TempDir())
	w, err := s.Watch("pods", s.Revision())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := w.Next(context.WithoutCancel(t.Context()))
		ended <- err
	}()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, store.ErrClosed) {
		t.Errorf("a watcher ends with %v", err)
	}
	if _, err := s.Commit(t.Context(), store.Change{Key: key("a"), Body: text("a")}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a commit ends with %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("the second Close: %v", err)
	}
}

// The counter of a run that goes on for ever runs over into the run number.
func TestCounterRunsOver(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	over := s.Revision() + 1<<32 + 5
	if err := s.Reach(over); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if s = open(t, dir); s.Revision() <= over {
		t.Errorf("the next start is at %d, below %d", s.Revision(), over)
	}
}

func sameBody(a, b *store.Body) bool { return bytes.Equal(a.Bytes(), b.Bytes()) }
