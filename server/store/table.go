package store

import (
	"cmp"
	"slices"
)

// table is the current state of one resource and its recent past. The store's
// mutex guards it.
type table struct {
	rows map[rowKey]row

	// events are the changes after floor, in the order of their revisions.
	// What lies at or below floor is forgotten.
	events []*Event
	bytes  int
	floor  uint64
	window Window

	changed chan struct{} // closed at the next change
}

type rowKey struct{ namespace, name string }

type row struct {
	Entry
	onDisk bool
}

func newTable(floor uint64, w Window) *table {
	return &table{rows: map[rowKey]row{}, floor: floor, window: w, changed: make(chan struct{})}
}

// apply makes e the newest change. It does not wake watchers.
func (t *table) apply(e Event, onDisk bool) {
	key := rowKey{e.Namespace, e.Name}
	if e.Type == Deleted {
		delete(t.rows, key)
	} else {
		t.rows[key] = row{e.Entry, onDisk}
	}
	t.events = append(t.events, &e)
	t.bytes += e.Body.Len()
	drop := 0
	for ; len(t.events)-drop > t.window.Events || t.bytes > t.window.Bytes && drop < len(t.events); drop++ {
		t.bytes -= t.events[drop].Body.Len()
		t.floor = t.events[drop].Rev
	}
	// The dropped events' bodies must not be kept alive by the array; append
	// moves the rest to a new one when it is used up.
	clear(t.events[:drop])
	t.events = t.events[drop:]
}

// wake tells the watchers that there is something new.
func (t *table) wake() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// after returns up to max events with a revision above rev, or ErrCompact if
// some of those are forgotten.
func (t *table) after(rev uint64, max int) ([]*Event, error) {
	if rev < t.floor {
		return nil, ErrCompact
	}
	i, _ := slices.BinarySearchFunc(t.events, rev+1, func(e *Event, rev uint64) int { return cmp.Compare(e.Rev, rev) })
	return slices.Clone(t.events[i:min(i+max, len(t.events))]), nil
}

// last is the revision of the newest event that is remembered; floor without one.
func (t *table) last() uint64 {
	if n := len(t.events); n > 0 {
		return t.events[n-1].Rev
	}
	return t.floor
}

// list returns the entries of namespace, or of all when it is "", sorted.
func (t *table) list(namespace string) []Entry {
	entries := make([]Entry, 0, len(t.rows))
	for key, r := range t.rows {
		if namespace == "" || key.namespace == namespace {
			entries = append(entries, r.Entry)
		}
	}
	sortEntries(entries)
	return entries
}

// listAt is list as it was at rev, which must not lie below floor.
func (t *table) listAt(namespace string, rev uint64) []Entry {
	past := map[rowKey]Entry{}
	for key, r := range t.rows {
		past[key] = r.Entry
	}
	for _, e := range slices.Backward(t.events) {
		if e.Rev <= rev {
			break
		}
		key := rowKey{e.Namespace, e.Name}
		if e.Prev.Rev == 0 {
			delete(past, key)
		} else {
			past[key] = e.Prev
		}
	}
	entries := make([]Entry, 0, len(past))
	for key, e := range past {
		if namespace == "" || key.namespace == namespace {
			entries = append(entries, e)
		}
	}
	sortEntries(entries)
	return entries
}

func sortEntries(entries []Entry) {
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}
