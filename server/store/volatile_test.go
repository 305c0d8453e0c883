package store_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"bramble.dev/bramble/server/store"
)

func lease(name string, rev uint64) store.Change {
	return store.Change{
		Key: store.Key{Resource: "leases", Namespace: "ns", Name: name}, Rev: rev,
		Body: text("heartbeat of " + name), Volatile: true,
	}
}

// files returns the content of all files in dir, and when each was changed.
func files(t *testing.T, dir string) (content map[string][]byte, changed map[string]int64) {
	t.Helper()
	content, changed = map[string][]byte{}, map[string]int64{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		content[e.Name()], changed[e.Name()] = b, info.ModTime().UnixNano()
	}
	return content, changed
}

func TestVolatileNeverTouchesTheDisk(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	put(t, s, "a", 0)
	before, whenBefore := files(t, dir)
	var rev uint64
	for range 200 {
		rev = commit(t, s, lease("n", rev))
	}
	commit(t, s, lease("m", 0))
	gone := lease("n", rev)
	gone.Delete = true
	commit(t, s, gone)
	after, whenAfter := files(t, dir)
	for name := range after {
		if !bytes.Equal(before[name], after[name]) || whenBefore[name] != whenAfter[name] {
			t.Errorf("%s was written", name)
		}
	}
	// Nor together with what is durable.
	commit(t, s, store.Change{Key: key("b"), Body: text("b")}, lease("l", 0))
	all, _ := files(t, dir)
	for name, b := range all {
		if bytes.Contains(b, []byte("heartbeat")) {
			t.Errorf("%s has a heartbeat in it", name)
		}
	}
	s.Close()
	entries, _, err := open(t, dir).List("leases", "", 0)
	if err != nil || len(entries) != 0 {
		t.Errorf("%d heartbeats outlived the process, %v", len(entries), err)
	}
}

func TestVolatileChangeOfADurableObject(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	a := put(t, s, "a", 0)
	b := put(t, s, "b", 0)
	a2 := commit(t, s, store.Change{Key: key("a"), Rev: a, Volatile: true, Body: text("in memory")})
	if e, _ := s.Get(key("a")); e.Rev != a2 || !bytes.HasPrefix(e.Body.Bytes(), []byte("in memory")) {
		t.Errorf("now it is %+v", e)
	}
	commit(t, s, store.Change{Key: key("b"), Rev: b, Volatile: true, Delete: true, Body: text("b")})
	s.Close()
	s = open(t, dir)
	if e, _ := s.Get(key("a")); e.Rev != a || string(e.Body.Bytes()) != fmt.Sprintf("a@%d", a) {
		t.Errorf("after a restart it is %+v", e)
	}
	if _, ok := s.Get(key("b")); ok {
		t.Error("what was deleted came back")
	}
}

// All share one sequence: a watcher of either sees revisions in order, and a
// commit of both is one.
func TestVolatileSharesTheSequence(t *testing.T) {
	s := open(t, t.TempDir())
	start := s.Revision()
	pods, err := s.Watch("pods", start)
	if err != nil {
		t.Fatal(err)
	}
	leases, err := s.Watch("leases", start)
	if err != nil {
		t.Fatal(err)
	}
	revs, err := s.Commit(t.Context(), store.Change{Key: key("a"), Body: text("a")}, lease("n", 0), store.Change{Key: key("b"), Body: text("b")})
	if err != nil || revs[0] != start+1 || revs[1] != start+2 || revs[2] != start+3 {
		t.Fatal(revs, err)
	}
	got, err := pods.Next(t.Context())
	if err != nil || len(got) != 2 || got[0].Rev != revs[0] || got[1].Rev != revs[2] {
		t.Errorf("pods: %+v, %v", got, err)
	}
	got, err = leases.Next(t.Context())
	if err != nil || len(got) != 1 || got[0].Rev != revs[1] {
		t.Errorf("leases: %+v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := leases.Next(ctx); err == nil {
		t.Errorf("more events: %+v", got)
	}
}
