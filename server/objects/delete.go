package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/store"
)

// Delete removes an object, or begins to: where its kind asks for a grace
// period, or finalizers wait, it only gets a deletionTimestamp, and deleted is
// false. Who is to end it then removes the last finalizer by Update, or calls
// Delete with a grace period of 0. A grace period is only ever shortened. The
// propagation policies Foreground and Orphan become finalizers, which the
// garbage collector takes away when it has done what they ask.
func (r *Registry) Delete(ctx context.Context, k *Kind, namespace, name string, opts metav1.DeleteOptions) (res Result, deleted bool, err error) {
	for range conflictTries {
		res, deleted, err = r.tryDelete(ctx, k, namespace, name, opts)
		if !errors.Is(err, store.ErrConflict) {
			return res, deleted, err
		}
	}
	return Result{}, false, busy(k, name)
}

func (r *Registry) tryDelete(ctx context.Context, k *Kind, namespace, name string, opts metav1.DeleteOptions) (Result, bool, error) {
	entry, ok := r.store.Get(k.key(namespace, name))
	if !ok {
		return Result{}, false, apierrors.NewNotFound(k.GroupResource(), name)
	}
	old, err := k.Decode(entry.Body.Bytes())
	if err != nil {
		return Result{}, false, err
	}
	if err := checkPreconditions(k, opts.Preconditions, old); err != nil {
		return Result{}, false, err
	}
	dryRun := slices.Contains(opts.DryRun, metav1.DryRunAll)
	req := Request{Verb: "delete", Kind: k, Namespace: namespace, Name: name, Old: old, DryRun: dryRun}
	if err := r.admit(ctx, req); err != nil {
		return Result{}, false, err
	}
	obj := clone(old)
	changed := propagate(obj, opts)
	changed = markDeleted(k, obj, opts.GracePeriodSeconds, r.config.Now()) || changed
	endNamespace(obj)
	e, err := encode(k, obj)
	if err != nil {
		return Result{}, false, err
	}
	res := Result{Stored: storedOf(entry)}
	switch gone := ended(obj); {
	case dryRun:
		res.Body = store.NewBody(e.at(entry.Rev))
		return res, gone, nil
	case gone:
		res.Stored, err = r.remove(ctx, k, obj, e, entry.Rev)
		return res, err == nil, err
	case changed:
		res.Stored, err = r.commit(ctx, k, obj, e, entry.Rev)
	}
	return res, false, err
}

func checkPreconditions(k *Kind, p *metav1.Preconditions, old Object) error {
	if p == nil {
		return nil
	}
	if p.UID != nil {
		if err := checkUID(k, *p.UID, old); err != nil {
			return err
		}
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != old.GetResourceVersion() {
		return conflict(k, old.GetName(), fmt.Errorf("the precondition names resourceVersion %s, the object has %s",
			*p.ResourceVersion, old.GetResourceVersion()))
	}
	return nil
}

// markDeleted writes into obj when it is to end, and reports whether that is
// new. It follows Kubernetes' BeforeDelete: the first deletion decides the
// grace period, a later one may only shorten it.
func markDeleted(k *Kind, obj Object, requested *int64, now time.Time) bool {
	if requested != nil && *requested < 0 {
		one := int64(1)
		requested = &one
	}
	grace := int64(0)
	if k.Grace != nil {
		grace = k.Grace(obj, requested)
	}
	end := now.Add(time.Duration(grace) * time.Second)
	if was := obj.GetDeletionTimestamp(); was != nil {
		given := obj.GetDeletionGracePeriodSeconds()
		if given == nil || requested == nil || grace >= *given {
			return false
		}
		end = was.Add(time.Duration(grace-*given) * time.Second)
	}
	at := metav1.NewTime(end).Rfc3339Copy()
	if obj.GetDeletionTimestamp() == nil && obj.GetGeneration() > 0 {
		obj.SetGeneration(obj.GetGeneration() + 1)
	}
	obj.SetDeletionTimestamp(&at)
	obj.SetDeletionGracePeriodSeconds(&grace)
	return true
}

// propagate gives obj the finalizer that the deletion's propagation policy asks
// for, and takes the other; without a policy both stay as they are. It reports
// whether that is new.
func propagate(obj Object, opts metav1.DeleteOptions) bool {
	wanted := ""
	//lint:ignore SA1019 old clients send it
	orphan := opts.OrphanDependents
	switch policy := opts.PropagationPolicy; {
	case policy == nil && orphan == nil:
		return false
	case policy == nil && *orphan, policy != nil && *policy == metav1.DeletePropagationOrphan:
		wanted = metav1.FinalizerOrphanDependents
	case policy != nil && *policy == metav1.DeletePropagationForeground:
		wanted = metav1.FinalizerDeleteDependents
	}
	was := obj.GetFinalizers()
	now := slices.DeleteFunc(slices.Clone(was), func(f string) bool {
		return f != wanted && (f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents)
	})
	if wanted != "" && !slices.Contains(now, wanted) {
		now = append(now, wanted)
	}
	if slices.Equal(was, now) {
		return false
	}
	obj.SetFinalizers(now)
	return true
}
