package gc

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// treat does for one object what its owners and its finalizers ask.
func (c *Owners) treat(ctx context.Context, ref Ref) error {
	o, err := c.lookup(ctx, ref)
	switch {
	case err != nil || o == nil:
		return err
	case o.orphansDependents():
		return c.orphan(ctx, o)
	case o.awaitsDependents():
		return c.await(ctx, o)
	case o.Deleting || len(o.Owners) == 0:
		return nil
	}
	return c.judge(ctx, o)
}

func (c *Owners) lookup(ctx context.Context, ref Ref) (*Object, error) {
	o, _, err := c.objects.Lookup(ctx, metav1.OwnerReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: ref.UID}, ref.Namespace)
	return o, err
}

// judge deletes an object none of whose owners will stay, and takes from any
// other the references to those that will not.
func (c *Owners) judge(ctx context.Context, o *Object) error {
	gone := map[types.UID]bool{}
	waiting, stay := false, false
	for _, reference := range o.Owners {
		owner, resolvable, err := c.objects.Lookup(ctx, reference, o.Namespace)
		switch {
		case err != nil:
			return err
		case !resolvable:
			stay = true
		case owner == nil:
			gone[reference.UID] = true
		case owner.awaitsDependents() && blocks(reference):
			gone[reference.UID], waiting = true, true
		default:
			stay = true
		}
	}
	switch {
	case stay && len(gone) > 0:
		return c.objects.Edit(ctx, o.Ref, func(o *Object) { o.disown(gone) })
	case stay:
		return nil
	case waiting && len(c.dependents(o.UID)) > 0:
		return c.objects.Delete(ctx, o.Ref, metav1.DeletePropagationForeground)
	}
	return c.objects.Delete(ctx, o.Ref, o.policy())
}

// policy is the one that an earlier deletion of o asked for.
func (o *Object) policy() metav1.DeletionPropagation {
	switch {
	case slices.Contains(o.Finalizers, metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case slices.Contains(o.Finalizers, metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

// orphan lets an owner go without what it owns.
func (c *Owners) orphan(ctx context.Context, owner *Object) error {
	for _, ref := range c.dependents(owner.UID) {
		err := c.objects.Edit(ctx, ref, func(o *Object) { o.disown(map[types.UID]bool{owner.UID: true}) })
		if err != nil {
			return err
		}
	}
	return c.release(ctx, owner, metav1.FinalizerOrphanDependents)
}

// await deletes what an owner waits for, and lets it go when none of that is
// left.
func (c *Owners) await(ctx context.Context, owner *Object) error {
	blocked := false
	var errs []error
	for _, ref := range c.dependents(owner.UID) {
		o, err := c.lookup(ctx, ref)
		if err != nil {
			return err
		}
		i := -1
		if o != nil {
			i = slices.IndexFunc(o.Owners, func(r metav1.OwnerReference) bool { return r.UID == owner.UID })
		}
		if i < 0 {
			continue // gone, or another's by now
		}
		if !o.Deleting {
			errs = append(errs, c.judge(ctx, o))
		}
		if blocks(o.Owners[i]) && !c.waitsFor(ctx, o, owner) {
			blocked = true
		}
	}
	if err := errors.Join(errs...); err != nil || blocked {
		return err
	}
	return c.release(ctx, owner, metav1.FinalizerDeleteDependents)
}

// waitsFor reports whether o is itself waiting for owner to go, maybe through
// others: a circle, in which everybody would wait for ever.
func (c *Owners) waitsFor(ctx context.Context, o, owner *Object) bool {
	seen := map[types.UID]bool{}
	var above func(x *Object) bool // whether o is among the waiting owners of x
	above = func(x *Object) bool {
		for _, reference := range x.Owners {
			if seen[reference.UID] || !blocks(reference) {
				continue
			}
			seen[reference.UID] = true
			up, _, err := c.objects.Lookup(ctx, reference, x.Namespace)
			if err != nil || up == nil || !up.awaitsDependents() {
				continue
			}
			if up.UID == o.UID || above(up) {
				return true
			}
		}
		return false
	}
	return o.awaitsDependents() && above(owner)
}

func (c *Owners) release(ctx context.Context, o *Object, finalizer string) error {
	return c.objects.Edit(ctx, o.Ref, func(o *Object) {
		o.Finalizers = slices.DeleteFunc(o.Finalizers, func(f string) bool { return f == finalizer })
	})
}

func (o *Object) disown(owners map[types.UID]bool) {
	o.Owners = slices.DeleteFunc(o.Owners, func(r metav1.OwnerReference) bool { return owners[r.UID] })
}

func blocks(r metav1.OwnerReference) bool {
	return r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion
}
