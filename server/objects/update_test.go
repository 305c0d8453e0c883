package objects_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/objects"
)

func TestUpdateKeepsWhatIsNotTheCallers(t *testing.T) {
	r := open(t)
	before := decode[corev1.Pod](t, create(t, r, pods, pod("a")))
	wanted := pod("a")
	wanted.Labels = map[string]string{"x": "y"}
	wanted.Status.Phase = corev1.PodRunning
	res, err := r.Update(t.Context(), pods, "", "default", "a", func(objects.Object) (objects.Object, error) { return wanted, nil },
		objects.WriteOptions{FieldManager: "other"})
	if err != nil {
		t.Fatal(err)
	}
	got := decode[corev1.Pod](t, res.Stored)
	if got.UID != before.UID || !got.CreationTimestamp.Equal(&before.CreationTimestamp) || got.Status.Phase != corev1.PodPending {
		t.Errorf("an update without metadata made %+v", got)
	}
	if got.Labels["x"] != "y" || got.Generation != 1 || len(got.ManagedFields) != 2 {
		t.Errorf("the update is not there: %+v", got.ObjectMeta)
	}
}

func TestUpdateRefuses(t *testing.T) {
	r := open(t)
	create(t, r, pods, pod("a"))
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		is     func(error) bool
	}{
		"stale":             {func(p *corev1.Pod) { p.ResourceVersion = "1" }, apierrors.IsConflict},
		"no revision":       {func(p *corev1.Pod) { p.ResourceVersion = "x" }, apierrors.IsInvalid},
		"another uid":       {func(p *corev1.Pod) { p.UID = "x" }, apierrors.IsConflict},
		"another name":      {func(p *corev1.Pod) { p.Name = "b" }, apierrors.IsInvalid},
		"deletionTimestamp": {func(p *corev1.Pod) { now := metav1.Now(); p.DeletionTimestamp = &now }, apierrors.IsInvalid},
		"bad label":         {func(p *corev1.Pod) { p.Labels = map[string]string{"/": ""} }, apierrors.IsInvalid},
		"kind's rules":      {func(p *corev1.Pod) { p.Spec.Containers = nil }, apierrors.IsInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.Update(t.Context(), pods, "", "default", "a", func(o objects.Object) (objects.Object, error) {
				c.change(o.(*corev1.Pod))
				return o, nil
			}, objects.WriteOptions{})
			if !c.is(err) {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := r.Update(t.Context(), pods, "", "default", "none", nil, objects.WriteOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("an object that is not there: %v", err)
	}
	if _, err := r.Update(t.Context(), pods, "scale", "default", "a", nil, objects.WriteOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a subresource that is not there: %v", err)
	}
	refusal := errors.New("no")
	_, err := r.Update(t.Context(), pods, "", "default", "a", func(objects.Object) (objects.Object, error) { return nil, refusal }, objects.WriteOptions{})
	if !errors.Is(err, refusal) {
		t.Errorf("the caller's own error became %v", err)
	}
}

func TestUpdateOfNothingWritesNothing(t *testing.T) {
	r := open(t)
	stored := create(t, r, pods, pod("a"))
	for _, sub := range []string{"", "status", "binding"} {
		res, err := r.Update(t.Context(), pods, sub, "default", "a", func(o objects.Object) (objects.Object, error) { return o, nil },
			objects.WriteOptions{FieldManager: "someone else"})
		if err != nil || res.Rev != stored.Rev {
			t.Errorf("%q: revision %d became %d, %v", sub, stored.Rev, res.Rev, err)
		}
	}
}

func TestSubresources(t *testing.T) {
	r := open(t)
	create(t, r, pods, pod("a"))
	got := decode[corev1.Pod](t, update(t, r, pods, "status", "a", func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		p.Spec.NodeName = "ignored"
		p.Labels = map[string]string{"ignored": ""}
	}))
	if got.Status.Phase != corev1.PodRunning || got.Spec.NodeName != "" || got.Labels != nil || got.Generation != 1 {
		t.Errorf("status made %+v", got)
	}
	if m := got.ManagedFields[1]; m.Subresource != "status" || strings.Contains(m.FieldsV1.GetRawString(), "spec") {
		t.Errorf("status is managed as %+v", m)
	}
	got = decode[corev1.Pod](t, update(t, r, pods, "binding", "a", func(p *corev1.Pod) { p.Spec.NodeName = "n" }))
	if got.Spec.NodeName != "n" || got.Status.Phase != corev1.PodRunning {
		t.Errorf("binding made %+v", got)
	}
	got = decode[corev1.Pod](t, update(t, r, pods, "", "a", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "j" }))
	if got.Generation != 2 || got.Status.Phase != corev1.PodRunning {
		t.Errorf("a change of the spec made generation %d, %+v", got.Generation, got.Status)
	}
}

// Writers that name no revision never see each other's conflicts, and lose
// nothing.
func TestUpdateIsRetried(t *testing.T) {
	r := open(t)
	cm := configMap("a")
	cm.Data = map[string]string{}
	create(t, r, configMaps, cm)
	var wg sync.WaitGroup
	for _, key := range strings.Split("abcdefghij", "") {
		wg.Go(func() {
			for range 5 {
				_, err := r.Update(t.Context(), configMaps, "", "default", "a", func(o objects.Object) (objects.Object, error) {
					cm := o.(*corev1.ConfigMap)
					if cm.Data == nil {
						cm.Data = map[string]string{}
					}
					cm.Data[key] += "x"
					return cm, nil
				}, objects.WriteOptions{})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got, err := r.Get(t.Context(), configMaps, "default", "a")
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range decode[corev1.ConfigMap](t, got).Data {
		if value != "xxxxx" {
			t.Errorf("%s is %q", key, value)
		}
	}
}

func TestApply(t *testing.T) {
	r := open(t)
	apply := func(manager, patch string, force bool) (corev1.ConfigMap, bool, error) {
		res, created, err := r.Apply(t.Context(), configMaps, "", "default", "a", []byte("apiVersion: v1\nkind: ConfigMap\n"+patch), force,
			objects.WriteOptions{FieldManager: manager})
		if err != nil {
			return corev1.ConfigMap{}, false, err
		}
		return decode[corev1.ConfigMap](t, res.Stored), created, nil
	}
	first, created, err := apply("one", "data: {x: '1', z: '1'}", false)
	if err != nil || !created || first.Data["x"] != "1" || first.UID == "" {
		t.Fatalf("the first apply made %+v, %v, %v", first, created, err)
	}
	again, created, err := apply("one", "data: {x: '1', z: '1'}", false)
	if err != nil || created || again.ResourceVersion != first.ResourceVersion {
		t.Errorf("the same again made %+v, %v, %v", again, created, err)
	}
	if _, _, err = apply("two", "data: {x: '2'}", false); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "one") {
		t.Errorf("another's field: %v", err)
	}
	forced, _, err := apply("two", "data: {x: '2'}", true)
	if err != nil || forced.Data["x"] != "2" || forced.Data["z"] != "1" {
		t.Errorf("by force: %v, %v", forced.Data, err)
	}
	less, _, err := apply("one", "metadata: {labels: {l: m}}", false)
	if err != nil || less.Data["z"] != "" || less.Data["x"] != "2" || less.Labels["l"] != "m" {
		t.Errorf("a field that its owner left out: %v, %v", less.Data, err)
	}
	if _, _, err = apply("one", "data: [1]", false); !apierrors.IsBadRequest(err) {
		t.Errorf("a wrong type: %v", err)
	}
	if _, _, err = apply("one", "}{", false); !apierrors.IsBadRequest(err) {
		t.Errorf("no YAML: %v", err)
	}
}
