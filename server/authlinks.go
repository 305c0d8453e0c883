package server

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/auth"
	"bramble.dev/bramble/server/objects"
	"bramble.dev/bramble/server/store"
)

// manager is who the server's own writes are by.
const manager = "bramble-server"

// records keeps auth's records in the store, beside the objects.
type records struct {
	store *store.Store
	log   *slog.Logger
}

func (r records) ListRecords(kind string) ([]auth.Record, error) {
	entries, _, err := r.store.List(kind, "", 0)
	if err != nil {
		return nil, err
	}
	list := make([]auth.Record, len(entries))
	for i, e := range entries {
		list[i] = auth.Record{Name: e.Name, Rev: e.Rev, Body: e.Body.Bytes()}
	}
	return list, nil
}

func (r records) GetRecord(kind, name string) (auth.Record, bool) {
	e, ok := r.store.Get(store.Key{Resource: kind, Name: name})
	return auth.Record{Name: name, Rev: e.Rev, Body: e.Body.Bytes()}, ok
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
		return 0, objects.StoreError(r.log, err)
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
		return n.change(ctx, name, func(node *corev1.Node) {
			delete(node.Annotations, api.RevokedKey)
			node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, isRevokedTaint)
		})
	}
	return err
}

func (n nodeObjects) MarkRevoked(ctx context.Context, name string, at time.Time) error {
	err := n.change(ctx, name, func(node *corev1.Node) {
		if node.Annotations == nil {
			node.Annotations = make(map[string]string)
		}
		node.Annotations[api.RevokedKey] = at.UTC().Format(time.RFC3339)
		if !slices.ContainsFunc(node.Spec.Taints, isRevokedTaint) {
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: api.RevokedKey, Effect: corev1.TaintEffectNoSchedule})
		}
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func isRevokedTaint(t corev1.Taint) bool { return t.Key == api.RevokedKey }

// change writes to a Node as the server itself.
func (n nodeObjects) change(ctx context.Context, name string, do func(*corev1.Node)) error {
	_, err := n.registry.Update(api.WithoutUser(ctx), n.kind(), "", "", name, func(current objects.Object) (objects.Object, error) {
		do(current.(*corev1.Node))
		return current, nil
	}, objects.WriteOptions{FieldManager: manager})
	return err
}

// authAdmitter is a part of the admission chain that auth has.
type authAdmitter struct {
	part interface {
		Admit(context.Context, auth.Write) error
	}
}

func (r authAdmitter) Admit(ctx context.Context, req objects.Request) error {
	w := auth.Write{Verb: req.Verb, Subresource: req.Subresource}
	if req.Obj != nil { // a nil interface must stay one
		w.Obj = req.Obj
	}
	if req.Old != nil {
		w.Old = req.Old
	}
	return r.part.Admit(ctx, w)
}
