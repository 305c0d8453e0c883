package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/auth"
	"bramble.dev/bramble/server/objects"
	"bramble.dev/bramble/server/store"
)

// manager is who the server's own writes are by.
const manager = "bramble-server"

// records keeps auth's records in the store, beside the objects.
type records struct{ store *store.Store }

func (r records) ListRecords(kind string) ([]auth.Record, error) {
	entries, _, err := r.store.List(kind, "", 0)
	if err != nil {
		return nil, err
	}
	list := make([]auth.Record, len(entries))
	for i, e := range entries {
		list[i] = auth.Record{Name: e.Name, Rev: e.Rev, Body: e.Body}
	}
	return list, nil
}

func (r records) GetRecord(kind, name string) (auth.Record, bool) {
	e, ok := r.store.Get(store.Key{Resource: kind, Name: name})
	return auth.Record{Name: name, Rev: e.Rev, Body: e.Body}, ok
}

func (r records) PutRecord(ctx context.Context, kind string, rec auth.Record) (uint64, error) {
	return r.commit(ctx, kind, rec, false)
}

func (r records) DeleteRecord(ctx context.Context, kind string, rec auth.Record) error {
	_, err := r.commit(ctx, kind, rec, true)
	return err
}

func (r records) commit(ctx context.Context, kind string, rec auth.Record, remove bool) (uint64, error) {
	revs, err := r.store.Commit(ctx, store.Change{
		Key:    store.Key{Resource: kind, Name: rec.Name},
		Rev:    rec.Rev,
		Body:   func(uint64) []byte { return rec.Body },
		Delete: remove,
	})
	switch {
	case errors.Is(err, store.ErrConflict):
		return 0, auth.ErrChanged
	case err != nil:
		return 0, err
	}
	return revs[0], nil
}

// nodeObjects are the Node objects for auth.
type nodeObjects struct{ registry *objects.Registry }

func (n nodeObjects) kind() *objects.Kind {
	k, _ := n.registry.Kind("", "nodes")
	return k
}

func (n nodeObjects) NodeExists(ctx context.Context, name string) (bool, error) {
	_, err := n.registry.Get(ctx, n.kind(), "", name)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

func (n nodeObjects) CreateNode(ctx context.Context, name, podCIDR string) error {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Spec:       corev1.NodeSpec{PodCIDR: podCIDR, PodCIDRs: []string{podCIDR}},
	}
	_, err := n.registry.Create(ctx, n.kind(), "", node, objects.WriteOptions{FieldManager: manager})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// nodeRestriction is auth's part of the admission chain.
type nodeRestriction struct{ restriction *auth.NodeRestriction }

func (r nodeRestriction) Admit(ctx context.Context, req objects.Request) error {
	w := auth.Write{Verb: req.Verb, Subresource: req.Subresource}
	if req.Obj != nil { // a nil interface must stay one
		w.Obj = req.Obj
	}
	if req.Old != nil {
		w.Old = req.Old
	}
	return r.restriction.Admit(ctx, w)
}

// podFeed reads pods from the store's log: a position in it, moved on when auth
// asks.
type podFeed struct {
	store   *store.Store
	watcher *store.Watcher
}

func (f *podFeed) Poll(ctx context.Context) ([]auth.PodChange, bool, error) {
	if f.watcher == nil {
		return f.restart()
	}
	now, cancel := context.WithCancel(ctx)
	cancel() // Next then returns what there is and waits for nothing
	var changes []auth.PodChange
	for {
		events, err := f.watcher.Next(now)
		switch {
		case errors.Is(err, store.ErrCompact):
			return f.restart()
		case errors.Is(err, context.Canceled):
			return changes, false, nil // whatever ctx says: they are not told twice
		case err != nil:
			f.watcher = nil
			return nil, false, err
		}
		for _, e := range events {
			c, err := podChange(e.Entry, e.Type == store.Deleted)
			if err != nil {
				f.watcher = nil
				return nil, false, err
			}
			changes = append(changes, c)
		}
	}
}

func (f *podFeed) restart() ([]auth.PodChange, bool, error) {
	entries, rev, err := f.store.List("pods", "", 0)
	if err != nil {
		return nil, false, err
	}
	changes := make([]auth.PodChange, len(entries))
	for i, e := range entries {
		if changes[i], err = podChange(e, false); err != nil {
			return nil, false, err
		}
	}
	f.watcher, err = f.store.Watch("pods", rev)
	return changes, true, err
}

func podChange(e store.Entry, gone bool) (auth.PodChange, error) {
	c := auth.PodChange{Namespace: e.Namespace, Name: e.Name}
	if gone {
		return c, nil
	}
	c.Pod = &corev1.Pod{}
	if err := json.Unmarshal(e.Body, c.Pod); err != nil {
		return c, fmt.Errorf("cannot decode pod %s/%s: %w", e.Namespace, e.Name, err)
	}
	return c, nil
}
