package store_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"bramble.dev/bramble/server/store"
)

// model is what a store must be: the state, its whole past, and what of it is
// on disk.
type model struct {
	dir     string
	store   *store.Store
	now     map[store.Key]value
	disk    map[store.Key]value
	past    map[uint64]map[store.Key]value // of this run, by revision
	highest uint64                         // ever handed out
}

type value struct {
	rev  uint64
	body string
}

var modelWindow = store.Window{Events: 20, Bytes: 1 << 20}

func (m *model) open(t *rapid.T) {
	s, err := store.Open(t.Context(), store.Config{Dir: m.dir, Window: modelWindow})
	if err != nil {
		t.Fatal(err)
	}
	if s.Revision() <= m.highest {
		t.Fatalf("a start at revision %d after %d", s.Revision(), m.highest)
	}
	m.store, m.highest = s, s.Revision()
	m.now = maps.Clone(m.disk)
	m.past = map[uint64]map[store.Key]value{s.Revision(): maps.Clone(m.now)}
}

func drawKey(t *rapid.T) store.Key {
	return store.Key{
		Resource:  rapid.SampledFrom([]string{"pods", "leases"}).Draw(t, "resource"),
		Namespace: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"),
		Name:      rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "name"),
	}
}

// write commits one to three changes, right or wrong ones.
func (m *model) write(t *rapid.T) {
	state, disk, next := maps.Clone(m.now), maps.Clone(m.disk), m.highest
	seen := map[store.Key]bool{}
	holds := true
	var changes []store.Change
	for i := range rapid.IntRange(1, 3).Draw(t, "changes") {
		c := store.Change{
			Key:      drawKey(t),
			Volatile: rapid.Bool().Draw(t, "volatile"),
			Delete:   rapid.IntRange(0, 3).Draw(t, "delete") == 0,
			Check:    rapid.IntRange(0, 5).Draw(t, "check") == 0,
		}
		c.Rev = m.now[c.Key].rev
		if rapid.IntRange(0, 9).Draw(t, "stale") == 0 {
			c.Rev++
		}
		holds = holds && c.Rev == m.now[c.Key].rev && !seen[c.Key] && !(c.Delete && c.Rev == 0)
		seen[c.Key] = true
		c.Body = text(fmt.Sprint(i))
		changes = append(changes, c)
		if c.Check {
			continue
		}
		next++
		v := value{next, fmt.Sprintf("%d@%d", i, next)}
		switch {
		case c.Delete:
			delete(state, c.Key)
			delete(disk, c.Key)
		default:
			state[c.Key] = v
			if !c.Volatile {
				disk[c.Key] = v
			}
		}
	}
	_, err := m.store.Commit(t.Context(), changes...)
	if holds != (err == nil) || err != nil && !errors.Is(err, store.ErrConflict) {
		t.Fatalf("%+v: %v", changes, err)
	}
	if err == nil {
		m.now, m.disk, m.highest = state, disk, next
		m.past[next] = maps.Clone(state)
	}
}

func (m *model) reopen(t *rapid.T) {
	if err := m.store.Close(); err != nil {
		t.Fatal(err)
	}
	m.open(t)
}

// check compares the present, and one moment of the past, with the model.
func (m *model) check(t *rapid.T) {
	if m.store.Revision() != m.highest {
		t.Fatalf("revision %d, want %d", m.store.Revision(), m.highest)
	}
	revs := slices.Sorted(maps.Keys(m.past))
	at := rapid.SampledFrom(revs).Draw(t, "at")
	for _, resource := range []string{"pods", "leases"} {
		for _, namespace := range []string{"", "a"} {
			entries, rev, err := m.store.List(resource, namespace, 0)
			if err != nil || rev != m.highest {
				t.Fatal(rev, err)
			}
			m.compare(t, resource, namespace, m.now, entries)
			entries, _, err = m.store.List(resource, namespace, at)
			if errors.Is(err, store.ErrCompact) && len(revs) > modelWindow.Events/3 {
				continue
			}
			if err != nil {
				t.Fatalf("list at %d of %d: %v", at, m.highest, err)
			}
			m.compare(t, resource, namespace, m.past[at], entries)
		}
	}
}

func (m *model) compare(t *rapid.T, resource, namespace string, want map[store.Key]value, got []store.Entry) {
	n := 0
	for k := range want {
		if k.Resource == resource && (namespace == "" || k.Namespace == namespace) {
			n++
		}
	}
	if len(got) != n {
		t.Fatalf("%d %s in %q, want %d", len(got), resource, namespace, n)
	}
	for i, e := range got {
		if v := want[e.Key]; v.rev != e.Rev || v.body != string(e.Body.Bytes()) {
			t.Fatalf("%v is %d %s, want %+v", e.Key, e.Rev, e.Body.Bytes(), v)
		}
		if i > 0 && got[i-1].Namespace+"/"+got[i-1].Name >= e.Namespace+"/"+e.Name {
			t.Fatalf("%v stands after %v", e.Key, got[i-1].Key)
		}
	}
}

func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "store")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		m := &model{dir: dir, disk: map[store.Key]value{}}
		m.open(t)
		defer func() { m.store.Close() }()
		t.Repeat(map[string]func(*rapid.T){
			"write":  m.write,
			"write2": m.write,
			"write3": m.write,
			"reopen": m.reopen,
			"":       m.check,
		})
	})
}
