package objects_test

import (
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bramble.dev/bramble/server/objects"
)

func TestCreateFillsMetadata(t *testing.T) {
	r := open(t)
	stored := create(t, r, pods, pod("a"))
	got := decode[corev1.Pod](t, stored)
	if got.Kind != "Pod" || got.APIVersion != "v1" {
		t.Errorf("the body says %s %s", got.APIVersion, got.Kind)
	}
	if got.ResourceVersion != strconv.FormatUint(stored.Rev, 10) {
		t.Errorf("resourceVersion is %s at revision %d", got.ResourceVersion, stored.Rev)
	}
	if got.UID == "" || got.CreationTimestamp.IsZero() || got.Generation != 1 {
		t.Errorf("metadata is not filled in: %+v", got.ObjectMeta)
	}
	if got.Spec.RestartPolicy != corev1.RestartPolicyAlways || got.Status.Phase != corev1.PodPending {
		t.Errorf("no defaults: %+v", got)
	}
	if len(got.ManagedFields) != 1 || got.ManagedFields[0].Manager != "test" || strings.Contains(got.ManagedFields[0].FieldsV1.GetRawString(), "resourceVersion") {
		t.Errorf("managedFields are %+v", got.ManagedFields)
	}
	read, err := r.Get(t.Context(), pods, "default", "a")
	if err != nil || string(read.Body.Bytes()) != string(stored.Body.Bytes()) {
		t.Errorf("Get returns %s, %v", read.Body.Bytes(), err)
	}
}

func TestCreateRefuses(t *testing.T) {
	r := open(t)
	create(t, r, pods, pod("taken"))
	withRev := pod("x")
	withRev.ResourceVersion = "1"
	noContainers := pod("x")
	noContainers.Spec.Containers = nil
	large := configMap("large")
	large.Data["b"] = strings.Repeat("x", objects.MaxObjectBytes)
	for name, c := range map[string]struct {
		kind   *objects.Kind
		ns     string
		obj    objects.Object
		is     func(error) bool
		saying string
	}{
		"taken":             {pods, "default", pod("taken"), apierrors.IsAlreadyExists, `pods "taken" already exists`},
		"name":              {pods, "default", pod("Not_A_Name"), apierrors.IsInvalid, "metadata.name"},
		"no name":           {pods, "default", pod(""), apierrors.IsInvalid, "name or generateName is required"},
		"resourceVersion":   {pods, "default", withRev, apierrors.IsBadRequest, "should not be set"},
		"kind's rules":      {pods, "default", noContainers, apierrors.IsInvalid, "spec.containers"},
		"another namespace": {pods, "other", pod("x"), apierrors.IsBadRequest, "does not match"},
		"no namespace":      {pods, "nowhere", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, apierrors.IsNotFound, `namespaces "nowhere" not found`},
		"too large":         {configMaps, "default", large, apierrors.IsRequestEntityTooLargeError, "limit is 3145728"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.Create(t.Context(), c.kind, c.ns, c.obj, objects.WriteOptions{})
			if !c.is(err) || !strings.Contains(err.Error(), c.saying) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestGenerateName(t *testing.T) {
	suffixes := []string{"aaaaa", "aaaaa", "bbbbb"}
	r := newRegistry(t, openStore(t, t.TempDir()), objects.Config{
		NamespaceOptional: func(*objects.Kind, string) bool { return true },
		Suffix: func() string {
			s := suffixes[0]
			suffixes = suffixes[1:]
			return s
		},
	})
	p := pod("")
	p.GenerateName = "web-"
	if got := decode[corev1.Pod](t, create(t, r, pods, p)); got.Name != "web-aaaaa" {
		t.Errorf("the first is called %s", got.Name)
	}
	if got := decode[corev1.Pod](t, create(t, r, pods, p)); got.Name != "web-bbbbb" {
		t.Errorf("the second is called %s, though only one name was taken", got.Name)
	}
	if p.Name != "" {
		t.Error("Create changed its argument")
	}
}

func TestDryRun(t *testing.T) {
	r := open(t)
	before, err := r.List(t.Context(), pods, "", objects.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.Create(t.Context(), pods, "default", pod("a"), objects.WriteOptions{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := decode[corev1.Pod](t, res.Stored); got.ResourceVersion != "" || got.UID == "" {
		t.Errorf("a dry run returns %+v", got.ObjectMeta)
	}
	create(t, r, pods, pod("b"))
	res, err = r.Update(t.Context(), pods, "", "default", "b", func(o objects.Object) (objects.Object, error) {
		o.SetLabels(map[string]string{"x": "y"})
		return o, nil
	}, objects.WriteOptions{DryRun: true})
	if err != nil || decode[corev1.Pod](t, res.Stored).Labels["x"] != "y" {
		t.Errorf("a dry update returns %s, %v", res.Body.Bytes(), err)
	}
	if _, _, err := r.Delete(t.Context(), pods, "default", "b", metav1.DeleteOptions{DryRun: []string{"All"}}); err != nil {
		t.Error(err)
	}
	after, err := r.List(t.Context(), pods, "", objects.ListOptions{})
	if err != nil || after.Rev != before.Rev+1 || len(after.Items) != 1 || decode[corev1.Pod](t, after.Items[0]).Labels != nil {
		t.Errorf("dry runs left %+v, %v", after, err)
	}
}

func TestWarnings(t *testing.T) {
	p := pod("a")
	p.Spec.HostNetwork = true
	res, err := open(t).Create(t.Context(), pods, "default", p, objects.WriteOptions{})
	if err != nil || len(res.Warnings) != 1 {
		t.Errorf("got %q, %v", res.Warnings, err)
	}
}

func TestOwnersAreKeptOnce(t *testing.T) {
	r := open(t)
	one := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "x", UID: "1"}
	two := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "y", UID: "2"}
	check := func(res objects.Result, err error) {
		t.Helper()
		if err != nil || len(res.Warnings) != 1 || !strings.Contains(res.Warnings[0], "UID 1 ") {
			t.Errorf("warned with %q, %v", res.Warnings, err)
		}
		if got := decode[corev1.Pod](t, res.Stored).OwnerReferences; len(got) != 2 || got[0].UID != "1" || got[1].UID != "2" {
			t.Errorf("kept %+v", got)
		}
	}
	p := pod("a")
	p.OwnerReferences = []metav1.OwnerReference{one, two, one}
	res, err := r.Create(t.Context(), pods, "default", p, objects.WriteOptions{})
	check(res, err)
	res, err = r.Update(t.Context(), pods, "", "default", "a", func(o objects.Object) (objects.Object, error) {
		o.SetOwnerReferences([]metav1.OwnerReference{one, one, two})
		return o, nil
	}, objects.WriteOptions{})
	check(res, err)
}

func TestFinalizersHaveADomain(t *testing.T) {
	r := open(t)
	p := pod("a")
	p.Finalizers = []string{"example.com/x", metav1.FinalizerOrphanDependents, "bare"}
	_, err := r.Create(t.Context(), pods, "default", p, objects.WriteOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "metadata.finalizers[2]") || !strings.Contains(err.Error(), "example.com/bare") {
		t.Errorf("got %v", err)
	}
	p.Finalizers = p.Finalizers[:1]
	create(t, r, pods, p)
	_, err = r.Update(t.Context(), pods, "", "default", "a", func(o objects.Object) (objects.Object, error) {
		o.SetFinalizers([]string{"example.com/x", "bare"})
		return o, nil
	}, objects.WriteOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "metadata.finalizers[1]") {
		t.Errorf("an update: %v", err)
	}
}

// late has its metadata behind its spec.
type late struct {
	metav1.TypeMeta   `json:",inline"`
	Spec              struct{} `json:"spec"`
	metav1.ObjectMeta `json:"metadata"`
}

func (l *late) DeepCopyObject() runtime.Object { c := *l; return &c }

func TestAKindWithItsMetadataBehindIsRefused(t *testing.T) {
	kind := *configMaps
	kind.New = func() objects.Object { return &late{} }
	_, err := objects.NewRegistry(openStore(t, t.TempDir()), []*objects.Kind{namespaces, &kind}, objects.Config{})
	if err == nil || !strings.Contains(err.Error(), "its metadata does not stand first") {
		t.Errorf("the kind is registered: %v", err)
	}
}
