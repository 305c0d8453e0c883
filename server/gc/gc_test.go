package gc_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bramble.dev/bramble/server/gc"
)

// fake is a registry whose namespaces have some objects; each look takes one
// away, and the first one fails.
type fake struct {
	mu        sync.Mutex
	names     chan string
	left      map[string]int
	looks     int
	finalized []string
}

func (f *fake) EndingNamespaces(ctx context.Context, each func(string)) error {
	for {
		select {
		case name := <-f.names:
			each(name)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *fake) EmptyNamespace(_ context.Context, name string) (int, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.looks++; f.looks == 1 {
		return 0, true, errors.New("the disk is full")
	}
	left, ending := f.left[name]
	if left > 0 {
		left--
		f.left[name] = left
	}
	return left, ending, nil
}

func (f *fake) FinalizeNamespace(_ context.Context, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.finalized = append(f.finalized, name)
	delete(f.left, name)
	return nil
}

func TestNamespacesEndWhenEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{names: make(chan string), left: map[string]int{"a": 3, "b": 1}}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- gc.New(f, slog.New(slog.DiscardHandler)).Run(ctx) }()
		for _, name := range []string{"a", "a", "b", "a"} {
			f.names <- name
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if len(f.finalized) != 2 || f.finalized[0] != "b" || f.finalized[1] != "a" {
			t.Errorf("finalized %v", f.finalized)
		}
		f.left["a"] = 0
		f.names <- "a" // made and deleted again
		synctest.Wait()
		if len(f.finalized) != 3 {
			t.Errorf("the second life was not ended: %v", f.finalized)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// What is held by a finalizer for ever is looked at every few seconds only.
func TestHeldNamespaceIsRetriedSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{names: make(chan string), left: map[string]int{"a": 1 << 30}}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- gc.New(f, slog.New(slog.DiscardHandler)).Run(ctx) }()
		f.names <- "a"
		<-time.After(time.Hour)
		synctest.Wait()
		if f.looks < 700 || f.looks > 730 {
			t.Errorf("%d looks in an hour", f.looks)
		}
		cancel()
		<-done
	})
}
