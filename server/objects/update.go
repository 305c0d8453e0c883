package objects

import (
	"bytes"
	"context"
	"errors"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/store"
)

// Update changes an object, or of it what the subresource sub owns. change gets
// a fresh copy, which it may change and return, and returns what is wanted; it
// is called again when somebody else wrote in between. If what it returns says
// a resourceVersion or UID, that must be the stored one's (409). An update that
// changes nothing writes nothing. One that takes the last finalizer from an
// object that is being deleted removes it.
func (r *Registry) Update(ctx context.Context, k *Kind, sub, namespace, name string, change func(current Object) (Object, error), opts WriteOptions) (Result, error) {
	return r.update(ctx, &update{
		registry: r, kind: k, namespace: namespace, name: name, change: change, options: opts,
	}, sub)
}

func (r *Registry) update(ctx context.Context, u *update, sub string) (Result, error) {
	if sub != "" {
		if u.sub = u.kind.subresource(sub); u.sub == nil {
			return Result{}, apierrors.NewNotFound(u.kind.GroupResource(), u.name+"/"+sub)
		}
	}
	for range conflictTries {
		res, err := u.try(ctx)
		if !errors.Is(err, store.ErrConflict) {
			return res, err
		}
	}
	return Result{}, busy(u.kind, u.name)
}

// update is an Update, or an apply of an object that exists.
type update struct {
	registry        *Registry
	kind            *Kind
	sub             *Subresource // nil: the object itself
	namespace, name string
	change          func(Object) (Object, error)
	options         WriteOptions
	applied         bool // change keeps managedFields
}

// try makes the change to the present state. It returns store.ErrConflict if
// that was replaced meanwhile.
func (u *update) try(ctx context.Context) (Result, error) {
	k, r := u.kind, u.registry
	entry, ok := r.store.Get(k.key(u.namespace, u.name))
	if !ok {
		return Result{}, apierrors.NewNotFound(k.GroupResource(), u.name)
	}
	was := entry.Body.Bytes()
	old, err := k.Decode(was)
	if err != nil {
		return Result{}, err
	}
	obj, err := u.change(clone(old))
	if err != nil {
		return Result{}, err
	}
	if err := checkIdentity(k, obj, old); err != nil {
		return Result{}, err
	}
	keepMetadata(obj, old)
	repeated := oneOfEachOwner(obj)
	if obj, err = u.rules(ctx, obj, old); err != nil {
		return Result{}, err
	}
	e, err := u.encode(ctx, obj, old, entry.Rev, was)
	if err != nil {
		return Result{}, err
	}
	res := Result{storedOf(entry), append(repeated, warnings(k, obj)...)}
	switch body := e.at(entry.Rev); {
	case ended(obj) && !u.options.DryRun:
		res.Stored, err = r.remove(ctx, k, obj, e, entry.Rev)
	case bytes.Equal(body, was):
	case u.options.DryRun:
		res.Body = store.NewBody(body)
	default:
		res.Stored, err = r.commit(ctx, k, obj, e, entry.Rev)
	}
	return res, err
}

// rules takes obj through the kind's or the subresource's rules and admission.
func (u *update) rules(ctx context.Context, obj, old Object) (Object, error) {
	k := u.kind
	req := Request{Verb: "update", Kind: k, Namespace: u.namespace, Name: u.name, Old: old, DryRun: u.options.DryRun}
	if u.sub != nil {
		req.Subresource = u.sub.Name
		if u.sub.Update != nil {
			managed := obj.GetManagedFields()
			merged := clone(old)
			u.sub.Update(obj, merged)
			obj = merged
			if u.applied {
				obj.SetManagedFields(managed)
			}
		}
		req.Obj = obj
		if err := u.registry.admit(ctx, req); err != nil {
			return nil, err
		}
		if u.sub.Validate != nil {
			return obj, invalid(k, obj, u.sub.Validate(obj, old))
		}
		return obj, nil
	}
	setDefaults(k, obj)
	if k.PrepareUpdate != nil {
		k.PrepareUpdate(obj, old)
	}
	req.Obj = obj
	if err := u.registry.admit(ctx, req); err != nil {
		return nil, err
	}
	setDefaults(k, obj)
	countGeneration(obj, old)
	return obj, validateChange(k, obj, old)
}

// encode returns obj with its managedFields brought up to date. If nothing but
// the times in them would change, that is the stored body.
func (u *update) encode(ctx context.Context, obj, old Object, rev uint64, was []byte) (encoded, error) {
	wanted := obj.GetManagedFields()
	obj.SetManagedFields(old.GetManagedFields())
	e, err := encode(u.kind, obj)
	if err != nil {
		return e, err
	}
	unchanged := bytes.Equal(e.at(rev), was)
	switch {
	case unchanged && (u.applied && sameManagers(wanted, old.GetManagedFields()) || !u.applied && !setsManagers(wanted, old)):
		return e, nil
	case u.applied:
		obj.SetManagedFields(wanted)
	default:
		obj.SetManagedFields(wanted)
		sub := ""
		if u.sub != nil {
			sub = u.sub.Name
		}
		u.registry.manage(ctx, u.kind, sub, obj, old, u.options.FieldManager)
	}
	return encode(u.kind, obj)
}

// setsManagers reports whether a client wants other managedFields than old's:
// none at all means that it does not know of them.
func setsManagers(wanted []metav1.ManagedFieldsEntry, old Object) bool {
	return wanted != nil && !reflect.DeepEqual(wanted, old.GetManagedFields())
}

func (k *Kind) subresource(name string) *Subresource {
	for i := range k.Subresources {
		if k.Subresources[i].Name == name {
			return &k.Subresources[i]
		}
	}
	return nil
}
