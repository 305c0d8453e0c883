package store

import "errors"

// Key names one object. Resource is "pods" or "leases.coordination.k8s.io";
// Namespace is empty for what is cluster-scoped.
type Key struct {
	Resource, Namespace, Name string
}

// Entry is one stored object at one revision. Body is the encoded object with
// that revision in it; it is shared and must not be changed.
type Entry struct {
	Key
	Rev  uint64
	Body []byte
}

// Change is one write. Rev is the revision that the object must have now; 0
// means that it must not exist. Body is called once, on the writer's
// goroutine, with the revision that this write gets: it must be quick and must
// not call the store. With Delete it gives the object's last state, for the
// watchers. A Volatile change is never written to disk.
type Change struct {
	Key
	Rev      uint64
	Body     func(rev uint64) []byte
	Delete   bool
	Volatile bool
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
)
