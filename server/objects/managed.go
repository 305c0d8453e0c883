package objects

import (
	"context"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// managerKey names what has a field manager of its own: a kind, or one of its
// subresources.
type managerKey struct {
	kind *Kind
	sub  string
}

func (r *Registry) addManagers(k *Kind) error {
	if !k.IsStored() {
		return nil
	}
	subs := []string{""}
	hasStatus := false
	for _, sub := range k.Subresources {
		subs = append(subs, sub.Name)
		hasStatus = hasStatus || sub.Name == "status"
	}
	for _, sub := range subs {
		c := kindConverter{k}
		m, err := managedfields.NewDefaultFieldManager(r.config.Types, c, c, c,
			k.GroupVersionKind, k.GroupVersion(), sub, resetFields(k, sub, hasStatus))
		if err != nil {
			return err
		}
		r.managers[managerKey{k, sub}] = m
	}
	return nil
}

// resetFields is what a write to sub does not change, and so does not own.
func resetFields(k *Kind, sub string, hasStatus bool) map[fieldpath.APIVersion]fieldpath.Filter {
	var kept *fieldpath.Set
	switch {
	case sub == "status":
		kept = fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata"))
	case sub == "" && hasStatus:
		kept = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	default:
		return nil
	}
	version := fieldpath.APIVersion(k.GroupVersion().String())
	return map[fieldpath.APIVersion]fieldpath.Filter{version: fieldpath.NewExcludeSetFilter(kept)}
}

// manage writes into obj's managedFields what manager changed from old (nil: a
// new object). Bookkeeping never fails a write: what cannot be understood is
// left as it was.
func (r *Registry) manage(ctx context.Context, k *Kind, sub string, obj, old Object, manager string) {
	live := runtime.Object(old)
	if old == nil {
		empty := k.New()
		empty.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
		live = empty
	}
	obj.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	if manager == "" {
		manager = "unknown"
	}
	if _, err := r.managers[managerKey{k, sub}].Update(live, obj, manager); err != nil {
		r.config.Log.DebugContext(ctx, "cannot keep managedFields", "kind", k.Kind, "namespace", obj.GetNamespace(), "name", obj.GetName(), "err", err)
		if old != nil {
			obj.SetManagedFields(old.GetManagedFields())
		}
	}
}

// sameManagers compares managedFields but for their times.
func sameManagers(a, b []metav1.ManagedFieldsEntry) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i], b[i]
		x.Time, y.Time = nil, nil
		if !reflect.DeepEqual(x, y) {
			return false
		}
	}
	return true
}

// kindConverter is what a field manager asks of a scheme, for a kind of which
// there is one version.
type kindConverter struct{ kind *Kind }

// Convert implements runtime.ObjectConvertor.
func (c kindConverter) Convert(in, out, _ any) error {
	return fmt.Errorf("cannot convert %T to %T", in, out)
}

// ConvertToVersion implements runtime.ObjectConvertor.
func (c kindConverter) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	u, ok := in.(*unstructured.Unstructured)
	if !ok {
		return in, nil
	}
	obj := c.kind.New()
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, obj)
	return obj, err
}

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (c kindConverter) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// Default implements runtime.ObjectDefaulter.
func (c kindConverter) Default(in runtime.Object) {
	if obj, ok := in.(Object); ok && c.kind.Strategy.Default != nil {
		c.kind.Strategy.Default(obj)
	}
}

// New implements runtime.ObjectCreater.
func (c kindConverter) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	obj := c.kind.New()
	obj.GetObjectKind().SetGroupVersionKind(kind)
	return obj, nil
}
