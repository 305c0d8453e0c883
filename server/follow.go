package server

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"bramble.dev/bramble/server/objects"
)

// follower tells every object of a kind and then each change, also over gaps in
// the history: what went in a gap is told as deleted.
type follower struct {
	registry  *objects.Registry
	kind      *objects.Kind
	namespace string                                 // "": all
	reduce    func(obj objects.Object)               // to what is told and kept of it; nil: all
	tell      func(obj objects.Object, deleted bool) // without managedFields; shared: never changed
	synced    func()                                 // after all that there was at the start; called once

	known map[types.NamespacedName]objects.Object
	once  bool
}

// followAll runs followers until ctx ends, and returns nil then. They tell one
// call at a time, and synced is called after the last of them is.
func followAll(ctx context.Context, synced func(), followers ...*follower) error {
	group, ctx := errgroup.WithContext(ctx)
	var mu sync.Mutex // makes it one call at a time, and protects left
	left := len(followers)
	for _, f := range followers {
		tell := f.tell
		f.tell = func(obj objects.Object, deleted bool) {
			mu.Lock()
			defer mu.Unlock()
			tell(obj, deleted)
		}
		f.synced = func() {
			mu.Lock()
			defer mu.Unlock()
			if left--; left == 0 {
				synced()
			}
		}
		group.Go(func() error { return f.run(ctx) })
	}
	return group.Wait()
}

// run follows until ctx ends, and returns nil then.
func (f *follower) run(ctx context.Context) error {
	f.known = make(map[types.NamespacedName]objects.Object)
	for ctx.Err() == nil {
		err := f.watch(ctx)
		if err != nil && !apierrors.IsResourceExpired(err) && ctx.Err() == nil {
			return fmt.Errorf("cannot follow %s: %w", f.kind.Resource(), err)
		}
	}
	return nil
}

// watch begins with the present state and goes on until the watch ends.
func (f *follower) watch(ctx context.Context) error {
	w, err := f.registry.Watch(f.kind, f.namespace, objects.WatchOptions{SendInitialEvents: true})
	if err != nil {
		return err
	}
	initial := make(map[types.NamespacedName]bool)
	return w.Each(ctx, func(e objects.WatchEvent) error {
		if e.Type == watch.Bookmark {
			f.complete(initial)
			initial = nil
			return nil
		}
		obj, err := f.kind.Decode(e.Body.Bytes())
		if err != nil {
			return err
		}
		obj.SetManagedFields(nil) // nobody who is told reads them, and known would keep them
		if f.reduce != nil {
			f.reduce(obj)
		}
		name := types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
		if initial != nil {
			initial[name] = true
		}
		f.take(name, obj, e.Type == watch.Deleted)
		return nil
	})
}

func (f *follower) take(name types.NamespacedName, obj objects.Object, deleted bool) {
	if deleted {
		delete(f.known, name)
	} else {
		f.known[name] = obj
	}
	f.tell(obj, deleted)
}

// complete ends the initial state: what it does not have is gone.
func (f *follower) complete(initial map[types.NamespacedName]bool) {
	for name, obj := range f.known {
		if !initial[name] {
			f.take(name, obj, true)
		}
	}
	if !f.once {
		f.once = true
		f.synced()
	}
}
