package server

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"bramble.dev/bramble/server/gc"
	"bramble.dev/bramble/server/objects"
)

// owning is the registry as the garbage collector sees it. Events come by the
// thousand and own nothing: they are left out, as Kubernetes does.
type owning struct {
	registry *objects.Registry
	kinds    map[schema.GroupKind]*objects.Kind
}

func newOwning(registry *objects.Registry) owning {
	w := owning{registry, map[schema.GroupKind]*objects.Kind{}}
	for _, k := range registry.Kinds() {
		if k.IsStored() && k.Kind != "Event" {
			w.kinds[k.GroupVersionKind.GroupKind()] = k
		}
	}
	return w
}

// FollowObjects implements gc.Objects.
func (w owning) FollowObjects(ctx context.Context, each func(o gc.Object, gone bool)) error {
	group, ctx := errgroup.WithContext(ctx)
	var mu sync.Mutex // makes it one call at a time
	for _, k := range w.kinds {
		group.Go(func() error {
			for ctx.Err() == nil {
				if err := w.follow(ctx, k, &mu, each); err != nil && ctx.Err() == nil {
					return fmt.Errorf("cannot follow %s: %w", k.Resource(), err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (w owning) follow(ctx context.Context, k *objects.Kind, mu *sync.Mutex, each func(gc.Object, bool)) error {
	changes, err := w.registry.Watch(k, "", objects.WatchOptions{})
	if err != nil {
		return err
	}
	err = changes.Each(ctx, func(e objects.WatchEvent) error {
		o, err := objectOf(k, e.Stored)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		each(*o, e.Type == watch.Deleted)
		return nil
	})
	if apierrors.IsResourceExpired(err) {
		return nil
	}
	return err
}

func objectOf(k *objects.Kind, s objects.Stored) (*gc.Object, error) {
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(s.Body.Bytes(), &object); err != nil {
		return nil, fmt.Errorf("cannot read the metadata of a stored %s: %w", k.Kind, err)
	}
	return &gc.Object{
		Ref: gc.Ref{
			APIVersion: k.GroupVersion().String(), Kind: k.Kind,
			Namespace: object.Namespace, Name: object.Name, UID: object.UID,
		},
		Owners: object.OwnerReferences, Finalizers: object.Finalizers, Deleting: object.DeletionTimestamp != nil,
	}, nil
}

// Lookup implements gc.Objects.
func (w owning) Lookup(ctx context.Context, owner metav1.OwnerReference, namespace string) (*gc.Object, bool, error) {
	k := w.kind(owner.APIVersion, owner.Kind)
	if k == nil || k.Namespaced && namespace == "" {
		return nil, false, nil
	}
	if !k.Namespaced {
		namespace = ""
	}
	stored, err := w.registry.Get(ctx, k, namespace, owner.Name)
	if apierrors.IsNotFound(err) {
		return nil, true, nil
	}
	if err != nil {
		return nil, true, err
	}
	o, err := objectOf(k, stored)
	if err != nil || o.UID != owner.UID {
		return nil, true, err
	}
	return o, true, nil
}

func (w owning) kind(apiVersion, kind string) *objects.Kind {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil
	}
	return w.kinds[schema.GroupKind{Group: gv.Group, Kind: kind}]
}

// Delete implements gc.Objects.
func (w owning) Delete(ctx context.Context, ref gc.Ref, policy metav1.DeletionPropagation) error {
	_, _, err := w.registry.Delete(ctx, w.kind(ref.APIVersion, ref.Kind), ref.Namespace, ref.Name, metav1.DeleteOptions{
		PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &ref.UID},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// Edit implements gc.Objects.
func (w owning) Edit(ctx context.Context, ref gc.Ref, change func(*gc.Object)) error {
	_, err := w.registry.Update(ctx, w.kind(ref.APIVersion, ref.Kind), "", ref.Namespace, ref.Name, func(current objects.Object) (objects.Object, error) {
		if current.GetUID() != ref.UID {
			return current, nil
		}
		o := gc.Object{Owners: current.GetOwnerReferences(), Finalizers: current.GetFinalizers()}
		change(&o)
		current.SetOwnerReferences(o.Owners)
		current.SetFinalizers(o.Finalizers)
		return current, nil
	}, objects.WriteOptions{FieldManager: "garbage-collector"})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
