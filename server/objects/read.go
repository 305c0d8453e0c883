package objects

import (
	"context"

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
		return Stored{Body: e.withoutRevision()}, nil
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
}

// List is a part of a kind's objects as they were at Rev, sorted by namespace
// and name.
type List struct {
	Rev   uint64
	Items []Stored
}

// List returns the objects of a namespace, or of all when it is "". It fails
// with 410 (Expired) if At is no longer remembered, with a timeout of cause
// ResourceVersionTooLarge if it is yet to come, and with 400 for a field that
// the kind cannot be selected by.
func (r *Registry) List(_ context.Context, k *Kind, namespace string, opts ListOptions) (List, error) {
	s, err := newSelection(k, namespace, opts.Labels, opts.Fields)
	if err != nil {
		return List{}, err
	}
	entries, rev, err := r.store.List(k.Resource(), namespace, opts.At)
	if err != nil {
		return List{}, r.readError(opts.At, err)
	}
	l := List{Rev: rev, Items: make([]Stored, 0, len(entries))}
	for _, e := range entries {
		if s.has(e) {
			l.Items = append(l.Items, storedOf(e))
		}
	}
	return l, nil
}

func storedOf(e store.Entry) Stored { return Stored{Rev: e.Rev, Body: e.Body} }
