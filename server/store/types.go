package store

import (
	"errors"
	"sync/atomic"
)

// Key names one object. Resource is "pods" or "leases.coordination.k8s.io";
// Namespace is empty for what is cluster-scoped.
type Key struct {
	Resource, Namespace, Name string
}

// Entry is one stored object at one revision. Body is the encoded object with
// that revision in it.
type Entry struct {
	Key
	Rev  uint64
	Body *Body
	Memo *Memo // what readers derived from Body; never nil in a stored entry
}

// Memo holds one value that a reader derives from an entry's body, so that it
// is derived once for each revision. It is never written to disk. It is safe
// for concurrent use.
type Memo struct {
	value atomic.Pointer[any]
}

// NewMemo returns a Memo that holds value.
func NewMemo(value any) *Memo {
	m := &Memo{}
	m.value.Store(&value)
	return m
}

// Get returns the value, which derive makes if there is none yet. Two first
// callers at once may both derive it.
func (m *Memo) Get(derive func() any) any {
	if v := m.value.Load(); v != nil {
		return *v
	}
	value := derive()
	m.value.Store(&value)
	return value
}

// Change is one write. Rev is the revision that the object must have now; 0
// means that it must not exist. Body is called once, on the writer's
// goroutine, with the revision that this write gets: it must be quick and must
// not call the store. With Delete it gives the object's last state, for the
// watchers.
//
// A Volatile change is made in memory only. What the disk holds of the object,
// if it was durable before, stays there and comes back with the next Open; but
// a volatile Delete removes it there too.
type Change struct {
	Key
	Rev      uint64
	Body     func(rev uint64) []byte
	Memo     *Memo // for the new entry; nil: an empty one
	Delete   bool
	Volatile bool
	Check    bool // change nothing, only require Rev; Body is not called
}

// EventType is what happened to an object.
type EventType uint8

// The kinds of Event.
const (
	Added EventType = iota + 1
	Modified
	Deleted
)

// Event is one change as a watcher sees it. Prev is the state before, with
// Prev.Rev 0 where there was none.
type Event struct {
	Type EventType
	Entry
	Prev Entry
}

// Errors that callers decide on.
var (
	ErrConflict = errors.New("the object was changed or does not exist") // Change.Rev did not hold
	ErrCompact  = errors.New("that revision is gone")                    // 410, list again
	ErrFuture   = errors.New("that revision has not been handed out")    // a client of another database
	ErrClosed   = errors.New("the store is closed")

	ErrInUse   = errors.New("another process uses it")             // Open: the directory is taken
	ErrNewer   = errors.New("it was written by a newer version")   // Open: the schema is not known
	ErrDamaged = errors.New("the database file is damaged")        // Open: it was set aside
	errBody    = errors.New("the stored object cannot be decoded") // an envelope that makes no sense
)
