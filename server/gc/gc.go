// Package gc ends what is no longer wanted. A namespace that is being deleted has
// its objects deleted, and goes when none is left (Collector); an object whose
// owners are gone goes with them (Owners).
package gc

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Namespaces is what gc asks of the registry of objects.
type Namespaces interface {
	// EndingNamespaces calls each for every namespace that is being deleted,
	// until ctx ends.
	EndingNamespaces(ctx context.Context, each func(name string)) error
	// EmptyNamespace deletes what is in a namespace and returns how much is
	// left; ending is false if the namespace is gone, or lives again.
	EmptyNamespace(ctx context.Context, namespace string) (left int, ending bool, err error)
	// FinalizeNamespace lets an empty namespace go.
	FinalizeNamespace(ctx context.Context, name string) error
}

// How long a namespace is left alone before it is looked at again; doubling.
const (
	firstWait = 100 * time.Millisecond
	longWait  = 5 * time.Second
)

// Collector ends namespaces. Make it with New.
type Collector struct {
	namespaces Namespaces
	log        *slog.Logger

	mu      sync.Mutex      // protects ending
	ending  map[string]bool // the namespaces with a worker; true: look again at its end
	workers sync.WaitGroup
}

// New returns a collector that does nothing until Run.
func New(namespaces Namespaces, log *slog.Logger) *Collector {
	return &Collector{namespaces: namespaces, log: log, ending: map[string]bool{}}
}

// Run ends namespaces until ctx ends. It returns ctx's error, or why it cannot
// follow the namespaces any more.
func (c *Collector) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	err := c.namespaces.EndingNamespaces(ctx, func(name string) { c.begin(ctx, name) })
	cancel()
	c.workers.Wait()
	return err
}

// begin starts a worker for a namespace that has none.
func (c *Collector) begin(ctx context.Context, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, running := c.ending[name]; running {
		c.ending[name] = true
		return
	}
	c.ending[name] = false
	c.workers.Go(func() {
		for again := true; again; again = c.ended(name) {
			c.end(ctx, name)
		}
	})
}

// ended reports whether the namespace was reported again meanwhile.
func (c *Collector) ended(name string) (again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	again = c.ending[name]
	if again {
		c.ending[name] = false
	} else {
		delete(c.ending, name)
	}
	return again
}

// end empties a namespace and lets it go. Pods take their grace period and
// finalizers what they take, so it comes back until nothing is left.
func (c *Collector) end(ctx context.Context, name string) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for wait := firstWait; ; wait = min(2*wait, longWait) {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		done, err := c.try(ctx, name)
		if done {
			return
		}
		if err != nil && ctx.Err() == nil {
			c.log.Warn("cannot end a namespace yet", "namespace", name, "err", err)
		}
		timer.Reset(wait)
	}
}

func (c *Collector) try(ctx context.Context, name string) (done bool, err error) {
	left, ending, err := c.namespaces.EmptyNamespace(ctx, name)
	if err != nil || !ending || left > 0 {
		return err == nil && !ending, err
	}
	err = c.namespaces.FinalizeNamespace(ctx, name)
	return err == nil, err
}
