package gc

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Ref names one life of an object.
type Ref struct {
	APIVersion, Kind, Namespace, Name string
	UID                               types.UID
}

// Object is what garbage collection must know of an object.
type Object struct {
	Ref
	Owners     []metav1.OwnerReference
	Finalizers []string
	Deleting   bool
}

func (o *Object) awaitsDependents() bool {
	return o.Deleting && slices.Contains(o.Finalizers, metav1.FinalizerDeleteDependents)
}

func (o *Object) orphansDependents() bool {
	return o.Deleting && slices.Contains(o.Finalizers, metav1.FinalizerOrphanDependents)
}

// Objects is what gc asks of the registry about owners.
type Objects interface {
	// FollowObjects calls each for every object and at each change, one call at
	// a time, until ctx ends; gone says that it exists no more. After a gap in
	// the history all come anew, and what went meanwhile is not told.
	FollowObjects(ctx context.Context, each func(o Object, gone bool)) error
	// Lookup finds the object that an owner reference in a namespace names;
	// nil if it, or that life of it, is gone. resolvable is false where no such
	// kind is served, or one in a namespace is to own what is in none.
	Lookup(ctx context.Context, owner metav1.OwnerReference, namespace string) (o *Object, resolvable bool, err error)
	// Delete deletes that life of an object, if it is still there.
	Delete(ctx context.Context, ref Ref, policy metav1.DeletionPropagation) error
	// Edit changes owners and finalizers of that life, if it is still there.
	Edit(ctx context.Context, ref Ref, change func(o *Object)) error
}

// retryAfter is how long an object is left alone that could not be treated.
const retryAfter = time.Second

// Owners deletes what has lost its owners, and lets owners wait for or leave
// what they own, as Kubernetes' propagation policies say:
// https://kubernetes.io/docs/concepts/architecture/garbage-collection/.
// An owner counts as gone only when the registry says so at that moment.
type Owners struct {
	objects Objects
	log     *slog.Logger

	mu      sync.Mutex // protects what follows
	owned   map[types.UID]map[Ref]bool
	known   map[Ref]Object // those that have owners
	queue   []Ref
	queued  map[Ref]bool
	changed chan struct{} // holds one: the queue is not empty
}

// NewOwners returns a collector that does nothing until Run.
func NewOwners(objects Objects, log *slog.Logger) *Owners {
	return &Owners{
		objects: objects, log: log,
		owned: map[types.UID]map[Ref]bool{}, known: map[Ref]Object{}, queued: map[Ref]bool{},
		changed: make(chan struct{}, 1),
	}
}

// Run collects until ctx ends. It returns ctx's error, or why it cannot follow
// the objects any more.
func (c *Owners) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var worker sync.WaitGroup
	worker.Go(func() { c.work(ctx) })
	err := c.objects.FollowObjects(ctx, c.tell)
	cancel()
	worker.Wait()
	return err
}

// tell takes a change into the graph, and queues whom it concerns.
func (c *Owners) tell(o Object, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.known[o.Ref]
	for _, owner := range before.Owners {
		c.unlink(owner.UID, o.Ref)
	}
	delete(c.known, o.Ref)
	if !gone && len(o.Owners) > 0 {
		c.known[o.Ref] = o
		for _, owner := range o.Owners {
			c.link(owner.UID, o.Ref)
		}
	}
	if gone {
		for dependent := range c.owned[o.UID] {
			c.add(dependent)
		}
	} else if len(o.Owners) > 0 || o.awaitsDependents() || o.orphansDependents() {
		c.add(o.Ref)
	}
	for _, owner := range before.Owners { // it may wait for o
		c.add(Ref{owner.APIVersion, owner.Kind, o.Namespace, owner.Name, owner.UID})
	}
}

// link notes who owns dependent. Caller holds mu.
func (c *Owners) link(owner types.UID, dependent Ref) {
	if c.owned[owner] == nil {
		c.owned[owner] = map[Ref]bool{}
	}
	c.owned[owner][dependent] = true
}

// unlink takes link back. Caller holds mu.
func (c *Owners) unlink(owner types.UID, dependent Ref) {
	delete(c.owned[owner], dependent)
	if len(c.owned[owner]) == 0 {
		delete(c.owned, owner)
	}
}

// add queues an object that is not queued. Caller holds mu.
func (c *Owners) add(ref Ref) {
	if c.queued[ref] {
		return
	}
	c.queued[ref] = true
	c.queue = append(c.queue, ref)
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// work treats what is queued until ctx ends.
func (c *Owners) work(ctx context.Context) {
	failed := map[Ref]bool{}
	var retry <-chan time.Time // nil while nothing has failed: changes of others do not put it off
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.changed:
		case <-retry:
			c.mu.Lock()
			for ref := range failed {
				c.add(ref)
			}
			c.mu.Unlock()
			clear(failed)
			retry = nil
		}
		for ref, ok := c.next(); ok && ctx.Err() == nil; ref, ok = c.next() {
			if err := c.treat(ctx, ref); err != nil && ctx.Err() == nil {
				c.log.Warn("cannot collect an object yet", "kind", ref.Kind, "namespace", ref.Namespace, "name", ref.Name, "err", err)
				failed[ref] = true
			}
		}
		if len(failed) > 0 && retry == nil {
			retry = time.After(retryAfter)
		}
	}
}

func (c *Owners) next() (Ref, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return Ref{}, false
	}
	ref := c.queue[0]
	c.queue = c.queue[1:]
	delete(c.queued, ref)
	return ref, true
}

// dependents returns what names an owner's uid.
func (c *Owners) dependents(owner types.UID) []Ref {
	c.mu.Lock()
	defer c.mu.Unlock()
	var refs []Ref
	for ref := range c.owned[owner] {
		refs = append(refs, ref)
	}
	return refs
}
