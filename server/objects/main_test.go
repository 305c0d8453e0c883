package objects_test

import (
	"context"
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bramble.dev/bramble/server/objects"
	"bramble.dev/bramble/server/store"
)

// A small table of kinds with one of each sort.
var (
	namespaces = &objects.Kind{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace"), Plural: "namespaces",
		New: func() objects.Object { return &corev1.Namespace{} }, NewList: func() runtime.Object { return &corev1.NamespaceList{} },
		Strategy: objects.Strategy{PrepareCreate: func(o objects.Object) {
			o.(*corev1.Namespace).Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
		}},
	}
	configMaps = &objects.Kind{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Plural: "configmaps", Namespaced: true,
		New: func() objects.Object { return &corev1.ConfigMap{} }, NewList: func() runtime.Object { return &corev1.ConfigMapList{} },
	}
	events = &objects.Kind{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Event"), Plural: "events", Namespaced: true,
		New: func() objects.Object { return &corev1.Event{} }, NewList: func() runtime.Object { return &corev1.EventList{} },
		Volatile: func(string) bool { return true },
	}
	pods = &objects.Kind{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Pod"), Plural: "pods", Namespaced: true,
		New: func() objects.Object { return &corev1.Pod{} }, NewList: func() runtime.Object { return &corev1.PodList{} },
		FieldNames: []string{"spec.nodeName", "status.phase"},
		Fields: func(o objects.Object) fields.Set {
			p := o.(*corev1.Pod)
			return fields.Set{"spec.nodeName": p.Spec.NodeName, "status.phase": string(p.Status.Phase)}
		},
		Strategy: objects.Strategy{
			Default: func(o objects.Object) {
				if p := o.(*corev1.Pod); p.Spec.RestartPolicy == "" {
					p.Spec.RestartPolicy = corev1.RestartPolicyAlways
				}
			},
			PrepareCreate: func(o objects.Object) {
				o.SetGeneration(1)
				o.(*corev1.Pod).Status = corev1.PodStatus{Phase: corev1.PodPending}
			},
			PrepareUpdate: func(o, old objects.Object) { o.(*corev1.Pod).Status = old.(*corev1.Pod).Status },
			Validate: func(o objects.Object) field.ErrorList {
				if len(o.(*corev1.Pod).Spec.Containers) == 0 {
					return field.ErrorList{field.Required(field.NewPath("spec", "containers"), "")}
				}
				return nil
			},
			Warnings: func(o objects.Object) []string {
				if o.(*corev1.Pod).Spec.HostNetwork {
					return []string{"spec.hostNetwork: not isolated"}
				}
				return nil
			},
			Grace: func(o objects.Object, requested *int64) int64 {
				if o.(*corev1.Pod).Spec.NodeName == "" {
					return 0
				}
				if requested != nil {
					return *requested
				}
				return 30
			},
		},
		Subresources: []objects.Subresource{
			{Name: "status", Update: func(o, old objects.Object) { old.(*corev1.Pod).Status = o.(*corev1.Pod).Status }},
			{Name: "binding"},
		},
	}
)

func openStore(t testing.TB, dir string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func newRegistry(t testing.TB, s *store.Store, config objects.Config) *objects.Registry {
	t.Helper()
	r, err := objects.NewRegistry(s, []*objects.Kind{namespaces, configMaps, events, pods}, config)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// open returns a registry on a new store with the namespace "default".
func open(t testing.TB) *objects.Registry {
	t.Helper()
	r := newRegistry(t, openStore(t, t.TempDir()), objects.Config{})
	create(t, r, namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	return r
}

func create(t testing.TB, r *objects.Registry, k *objects.Kind, obj objects.Object) objects.Stored {
	t.Helper()
	res, err := r.Create(t.Context(), k, obj.GetNamespace(), obj, objects.WriteOptions{FieldManager: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return res.Stored
}

func update[T objects.Object](t testing.TB, r *objects.Registry, k *objects.Kind, sub, name string, change func(T)) objects.Stored {
	t.Helper()
	ns := "default"
	if !k.Namespaced {
		ns = ""
	}
	res, err := r.Update(t.Context(), k, sub, ns, name, func(o objects.Object) (objects.Object, error) {
		change(o.(T))
		return o, nil
	}, objects.WriteOptions{FieldManager: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return res.Stored
}

func decode[T any](t testing.TB, s objects.Stored) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(s.Body.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"a": "1"}}
}

// watching is a watch of which events can be taken one at a time.
type watching struct {
	*objects.Watch
	taken []objects.WatchEvent // from the watch, and not from here
}

func next(t testing.TB, ctx context.Context, w *watching) objects.WatchEvent {
	t.Helper()
	if len(w.taken) == 0 {
		events, err := w.Next(ctx)
		if err != nil {
			t.Fatalf("no event came: %v", err)
		}
		w.taken = events
	}
	e := w.taken[0]
	w.taken = w.taken[1:]
	return e
}
