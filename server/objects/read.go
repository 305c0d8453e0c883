package objects

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"bramble.dev/bramble/server/store"
)

// Get returns one object, or 404. A computed kind is asked for it.
func (r *Registry) Get(ctx context.Context, k *Kind, namespace, name string) (Stored, error) {
	if k.Read != nil {
		obj, err := k.Read(ctx, namespace, name)
		if err != nil {
			return Stored{}, err
		}
		e, err := encode(k, obj)
		if err != nil {
			return Stored{}, err
		}
		return Stored{Body: store.NewBody(e.withoutRevision())}, nil
	}
	e, ok := r.store.Get(k.key(namespace, name))
	if !ok {
		return Stored{}, apierrors.NewNotFound(k.GroupResource(), name)
	}
	return storedOf(e), nil
}

// ListOptions select from a kind. Nil selectors select everything.
type ListOptions struct {
	Labels labels.Selector
	Fields fields.Selector
	At     uint64 // the state at this revision; 0: now
	Limit  int    // at most so many objects; 0: all
	After  Place  // only what lies behind it; zero: from the start
}

// Place is an object's place in a list.
type Place struct{ Namespace, Name string }

func (p Place) before(e store.Entry) bool {
	return e.Namespace > p.Namespace || e.Namespace == p.Namespace && e.Name > p.Name
}

// List is a part of a kind's objects as they were at Rev, sorted by namespace
// and name.
type List struct {
	Rev   uint64
	Items []Stored
	// Where Limit cut the list off: the last object's place, and how many are
	// left. Remaining is negative where selectors make it unknown, as Kubernetes
	// has it.
	Last      Place
	Remaining int64
}

// List returns the objects of a namespace, or of all when it is "". It fails
// with 410 (Expired) if At is no longer remembered, with a timeout of cause
// ResourceVersionTooLarge if it is yet to come, and with 400 for a field that
// the kind cannot be selected by.
func (r *Registry) List(ctx context.Context, k *Kind, namespace string, opts ListOptions) (List, error) {
	s, err := newSelection(k, namespace, opts.Labels, opts.Fields)
	if err != nil {
		return List{}, err
	}
	entries, rev, err := r.store.List(k.Resource(), namespace, opts.At)
	if err != nil {
		return List{}, r.readError(opts.At, err)
	}
	if opts.After != (Place{}) {
		from, _ := slices.BinarySearchFunc(entries, opts.After, func(e store.Entry, p Place) int {
			if p.before(e) {
				return 1
			}
			return -1
		})
		entries = entries[from:]
	}
	l := List{Rev: rev, Items: make([]Stored, 0, sizeOf(len(entries), opts.Limit))}
	for i, e := range entries {
		if i%entriesPerLook == 0 && ctx.Err() != nil {
			return List{}, ctx.Err() // a costly selector, and nobody waits any more
		}
		if !s.has(e) {
			continue
		}
		if opts.Limit > 0 && len(l.Items) == opts.Limit {
			l.Remaining = int64(len(entries) - i)
			if s.labels != nil || s.fields != nil {
				l.Remaining = -1
			}
			return l, nil
		}
		l.Items = append(l.Items, storedOf(e))
		l.Last = Place{e.Namespace, e.Name}
	}
	l.Last = Place{}
	return l, nil
}

// entriesPerLook is how many objects are matched before a list looks whether
// its client is still there.
const entriesPerLook = 64

func sizeOf(entries, limit int) int {
	if limit > 0 {
		return min(entries, limit)
	}
	return entries
}

func storedOf(e store.Entry) Stored { return Stored{Rev: e.Rev, Body: e.Body} }
