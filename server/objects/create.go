package objects

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bramble.dev/bramble/server/store"
)

// How often a write is tried again for reasons that are not the caller's.
const (
	generateTries = 8
	conflictTries = 100
)

// Create stores a new object in namespace ("" for a cluster-scoped kind). obj
// is not changed. With generateName and no name it gets a name that is free.
func (r *Registry) Create(ctx context.Context, k *Kind, namespace string, obj Object, opts WriteOptions) (Result, error) {
	wanted := clone(obj)
	if err := r.prepareNew(k, namespace, wanted); err != nil {
		return Result{}, err
	}
	if wanted.GetName() != "" || wanted.GetGenerateName() == "" {
		return r.create(ctx, k, wanted, opts, false)
	}
	for try := 1; ; try++ {
		named := clone(wanted)
		named.SetName(r.generatedName(wanted))
		res, err := r.create(ctx, k, named, opts, false)
		if !apierrors.IsAlreadyExists(err) || try == generateTries {
			return res, err
		}
	}
}

// create takes a prepared object through its kind's rules into the store. An
// applied one has its managedFields already.
func (r *Registry) create(ctx context.Context, k *Kind, obj Object, opts WriteOptions, applied bool) (Result, error) {
	if _, err := r.namespaceCheck(k, obj.GetNamespace(), obj.GetName()); err != nil {
		return Result{}, err
	}
	setDefaults(k, obj)
	if k.PrepareCreate != nil {
		k.PrepareCreate(obj)
	}
	req := Request{Verb: "create", Kind: k, Namespace: obj.GetNamespace(), Name: obj.GetName(), Obj: obj, DryRun: opts.DryRun}
	if err := r.admit(ctx, req); err != nil {
		return Result{}, err
	}
	setDefaults(k, obj)
	repeated := oneOfEachOwner(obj)
	if err := validateNew(k, obj); err != nil {
		return Result{}, err
	}
	if !applied {
		r.manage(ctx, k, "", obj, nil, opts.FieldManager)
	}
	e, err := encode(k, obj)
	if err != nil {
		return Result{}, err
	}
	stored, err := r.insert(ctx, k, obj, e, opts.DryRun)
	if err != nil {
		return Result{}, err
	}
	return Result{stored, append(repeated, warnings(k, obj)...)}, nil
}

// insert writes a new object, whose name must be free and whose namespace must
// be there.
func (r *Registry) insert(ctx context.Context, k *Kind, obj Object, e encoded, dryRun bool) (Stored, error) {
	namespace, name := obj.GetNamespace(), obj.GetName()
	for range conflictTries {
		checks, err := r.namespaceCheck(k, namespace, name)
		if err != nil {
			return Stored{}, err
		}
		if _, taken := r.store.Get(k.key(namespace, name)); taken {
			return Stored{}, apierrors.NewAlreadyExists(k.GroupResource(), name)
		}
		if dryRun {
			return Stored{Body: store.NewBody(e.withoutRevision())}, nil
		}
		stored, err := r.commit(ctx, k, obj, e, 0, checks...)
		if !errors.Is(err, store.ErrConflict) {
			return stored, err
		}
	}
	return Stored{}, busy(k, name)
}

// commit puts obj, encoded as e, in the place of revision rev. It returns
// store.ErrConflict as it is, other errors as a Status.
func (r *Registry) commit(ctx context.Context, k *Kind, obj Object, e encoded, rev uint64, checks ...store.Change) (Stored, error) {
	var stored Stored
	changes := append(checks, store.Change{
		Key:      k.key(obj.GetNamespace(), obj.GetName()),
		Rev:      rev,
		Memo:     store.NewMemo(traitsOf(k, obj)),
		Volatile: k.isVolatile(obj.GetNamespace()),
		Body:     e.into(&stored),
	})
	return r.send(ctx, &stored, changes)
}

// remove deletes obj, whose last state is e, at revision rev.
func (r *Registry) remove(ctx context.Context, k *Kind, obj Object, e encoded, rev uint64) (Stored, error) {
	var stored Stored
	return r.send(ctx, &stored, []store.Change{{
		Key:      k.key(obj.GetNamespace(), obj.GetName()),
		Rev:      rev,
		Delete:   true,
		Volatile: k.isVolatile(obj.GetNamespace()),
		Body:     e.into(&stored),
	}})
}

// send commits changes, of which one fills stored.
func (r *Registry) send(ctx context.Context, stored *Stored, changes []store.Change) (Stored, error) {
	_, err := r.store.Commit(ctx, changes...)
	if errors.Is(err, store.ErrConflict) {
		return Stored{}, err
	}
	if err != nil {
		return Stored{}, r.otherError(err)
	}
	return *stored, nil
}

func (r *Registry) admit(ctx context.Context, req Request) error {
	for _, a := range r.config.Admit {
		if err := a.Admit(ctx, req); err != nil {
			return admissionError(req.Kind, req.Name, err)
		}
	}
	return nil
}

func setDefaults(k *Kind, obj Object) {
	if k.Strategy.Default != nil {
		k.Strategy.Default(obj)
	}
}

func warnings(k *Kind, obj Object) []string {
	if k.Warnings == nil {
		return nil
	}
	return k.Warnings(obj)
}

// busy is the answer when others were faster a hundred times.
func busy(k *Kind, name string) error {
	return conflict(k, name, fmt.Errorf("too many others write %s at the same time; try again", name))
}
