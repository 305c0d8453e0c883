package objects_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bramble.dev/bramble/server/objects"
)

func del(t *testing.T, r *objects.Registry, k *objects.Kind, name string, opts metav1.DeleteOptions) (objects.Result, bool) {
	t.Helper()
	ns := "default"
	if !k.Namespaced {
		ns = ""
	}
	res, deleted, err := r.Delete(t.Context(), k, ns, name, opts)
	if err != nil {
		t.Fatal(err)
	}
	return res, deleted
}

func grace(seconds int64) metav1.DeleteOptions {
	return metav1.DeleteOptions{GracePeriodSeconds: &seconds}
}

func TestDeleteAtOnce(t *testing.T) {
	r := open(t)
	before := create(t, r, configMaps, configMap("a"))
	res, deleted := del(t, r, configMaps, "a", metav1.DeleteOptions{})
	if !deleted || res.Rev <= before.Rev || decode[corev1.ConfigMap](t, res.Stored).Data["a"] != "1" {
		t.Errorf("got %v, %s", deleted, res.Body.Bytes())
	}
	if _, err := r.Get(t.Context(), configMaps, "default", "a"); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
	if _, _, err := r.Delete(t.Context(), configMaps, "default", "a", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the second time: %v", err)
	}
}

func TestDeleteGracefully(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := newRegistry(t, openStore(t, t.TempDir()), objects.Config{
		Now:               func() time.Time { return now },
		NamespaceOptional: func(*objects.Kind, string) bool { return true },
	})
	p := pod("a")
	p.Spec.NodeName = "n"
	create(t, r, pods, p)

	// when is the expected end after the first deletion, at now.
	expect := func(what string, res objects.Result, seconds int64, when time.Duration) {
		t.Helper()
		got := decode[corev1.Pod](t, res.Stored)
		if got.DeletionTimestamp == nil || !got.DeletionTimestamp.Equal(&metav1.Time{Time: now.Add(when)}) || *got.DeletionGracePeriodSeconds != seconds {
			t.Errorf("%s: ends at %v after %v", what, got.DeletionTimestamp, got.DeletionGracePeriodSeconds)
		}
	}
	first, deleted := del(t, r, pods, "a", metav1.DeleteOptions{})
	if deleted {
		t.Fatal("it is gone at once")
	}
	expect("the kind's own grace", first, 30, 30*time.Second)
	if got := decode[corev1.Pod](t, first.Stored); got.Generation != 2 {
		t.Errorf("deletion is not counted as a generation: %d", got.Generation)
	}
	same, _ := del(t, r, pods, "a", metav1.DeleteOptions{})
	longer, _ := del(t, r, pods, "a", grace(60))
	if same.Rev != first.Rev || longer.Rev != first.Rev {
		t.Error("a deletion that is not sooner wrote something")
	}
	shorter, _ := del(t, r, pods, "a", grace(5))
	expect("shorter", shorter, 5, 5*time.Second)
	negative, _ := del(t, r, pods, "a", grace(-1))
	expect("a negative one, which is 1", negative, 1, time.Second)
	update(t, r, pods, "status", "a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
	if _, deleted = del(t, r, pods, "a", grace(0)); !deleted {
		t.Error("grace 0 does not end it")
	}
}

func TestDeletePreconditions(t *testing.T) {
	r := open(t)
	stored := decode[corev1.ConfigMap](t, create(t, r, configMaps, configMap("a")))
	uid, rev := types.UID("other"), "1"
	for _, p := range []metav1.Preconditions{{UID: &uid}, {ResourceVersion: &rev}} {
		if _, _, err := r.Delete(t.Context(), configMaps, "default", "a", metav1.DeleteOptions{Preconditions: &p}); !apierrors.IsConflict(err) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	del(t, r, configMaps, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &stored.UID, ResourceVersion: &stored.ResourceVersion}})
}

func TestFinalizers(t *testing.T) {
	r := open(t)
	cm := configMap("a")
	cm.Finalizers = []string{"example.org/one", "example.org/two"}
	create(t, r, configMaps, cm)
	if res, deleted := del(t, r, configMaps, "a", metav1.DeleteOptions{}); deleted || decode[corev1.ConfigMap](t, res.Stored).DeletionTimestamp == nil {
		t.Fatal("finalizers did not hold the deletion")
	}
	if _, deleted := del(t, r, configMaps, "a", grace(0)); deleted {
		t.Error("force passes finalizers")
	}
	_, err := r.Update(t.Context(), configMaps, "", "default", "a", func(o objects.Object) (objects.Object, error) {
		o.SetFinalizers(append(o.GetFinalizers(), "example.org/three"))
		return o, nil
	}, objects.WriteOptions{})
	if !apierrors.IsInvalid(err) {
		t.Errorf("a new finalizer on a deleted object: %v", err)
	}
	update(t, r, configMaps, "", "a", func(cm *corev1.ConfigMap) { cm.Finalizers = cm.Finalizers[:1]; cm.DeletionTimestamp = nil })
	if got, err := r.Get(t.Context(), configMaps, "default", "a"); err != nil || decode[corev1.ConfigMap](t, got).DeletionTimestamp == nil {
		t.Errorf("with one finalizer left: %s, %v", got.Body.Bytes(), err)
	}
	update(t, r, configMaps, "", "a", func(cm *corev1.ConfigMap) { cm.Finalizers = nil })
	if _, err := r.Get(t.Context(), configMaps, "default", "a"); !apierrors.IsNotFound(err) {
		t.Errorf("it outlives its last finalizer: %v", err)
	}
}
