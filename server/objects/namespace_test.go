package objects_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/gc"
	"bramble.dev/bramble/server/objects"
)

func TestNamespaceEnds(t *testing.T) {
	r := open(t)
	create(t, r, configMaps, configMap("a"))
	p := pod("p")
	p.Spec.NodeName = "n"
	create(t, r, pods, p)
	create(t, r, events, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "e"}})

	res, deleted := del(t, r, namespaces, "default", metav1.DeleteOptions{})
	if ns := decode[corev1.Namespace](t, res.Stored); deleted || ns.Status.Phase != corev1.NamespaceTerminating {
		t.Fatalf("deleted %v, %+v", deleted, ns.Status)
	}
	_, err := r.Create(t.Context(), configMaps, "default", configMap("b"), objects.WriteOptions{})
	if !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("a new object: %v", err)
	}
	watched := startWatch(t, r, namespaces, "", objects.WatchOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- gc.New(r, slog.New(slog.DiscardHandler)).Run(ctx) }()
	ended := startWatch(t, r, configMaps, "default", objects.WatchOptions{From: res.Rev})
	expect(t, ended, "DELETED a")
	gentle := startWatch(t, r, pods, "default", objects.WatchOptions{From: res.Rev})
	expect(t, gentle, "MODIFIED p")
	del(t, r, pods, "p", grace(0)) // as its node does
	expect(t, watched, "ADDED default", "DELETED default")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, k := range []*objects.Kind{configMaps, pods, events} {
		if l, err := r.List(t.Context(), k, "", objects.ListOptions{}); err != nil || len(l.Items) != 0 {
			t.Errorf("%s: %d left, %v", k.Plural, len(l.Items), err)
		}
	}
}

// No object can be created between the deletion of a namespace and its end.
func TestNoObjectOutlivesItsNamespace(t *testing.T) {
	r := open(t)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				cm := configMap(fmt.Sprintf("c%d-%d", w, i))
				if _, err := r.Create(t.Context(), configMaps, "default", cm, objects.WriteOptions{}); err != nil {
					if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	wg.Go(func() {
		del(t, r, namespaces, "default", metav1.DeleteOptions{})
		if left, ending, err := r.EmptyNamespace(t.Context(), "default"); left != 0 || !ending || err != nil {
			t.Errorf("%d left, %v, %v", left, ending, err)
		}
		if err := r.FinalizeNamespace(t.Context(), "default"); err != nil {
			t.Error(err)
		}
	})
	wg.Wait()
	if l, err := r.List(t.Context(), configMaps, "", objects.ListOptions{}); err != nil || len(l.Items) != 0 {
		t.Errorf("%d objects without a namespace, %v", len(l.Items), err)
	}
}

func TestFinalizeNamespace(t *testing.T) {
	r := open(t)
	if err := r.FinalizeNamespace(t.Context(), "default"); !apierrors.IsConflict(err) {
		t.Errorf("a namespace that nobody deletes: %v", err)
	}
	if err := r.FinalizeNamespace(t.Context(), "none"); err != nil {
		t.Error(err)
	}
}

func TestEmptyNamespaceSparesTheLiving(t *testing.T) {
	r := open(t)
	create(t, r, configMaps, configMap("a"))
	for _, name := range []string{"default", "none"} {
		if _, ending, err := r.EmptyNamespace(t.Context(), name); ending || err != nil {
			t.Errorf("%s: %v, %v", name, ending, err)
		}
	}
	if _, err := r.Get(t.Context(), configMaps, "default", "a"); err != nil {
		t.Error(err)
	}
}
