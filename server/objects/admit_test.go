package objects_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/objects"
)

// guard notes all requests, labels what it sees and refuses what mallory does.
type guard struct{ seen []string }

func (g *guard) Admit(ctx context.Context, req objects.Request) error {
	user, _ := api.UserFrom(ctx)
	g.seen = append(g.seen, fmt.Sprintf("%s %s/%s %s old=%v", req.Verb, req.Kind.Plural, req.Subresource, req.Name, req.Old != nil))
	if user.Name == "mallory" {
		return errors.New("not you")
	}
	if user.Name == "busy" {
		return apierrors.NewTooManyRequests("later", 1)
	}
	if req.Verb == "create" {
		req.Obj.SetLabels(map[string]string{"by": user.Name})
	}
	return nil
}

func TestEveryWriteIsAdmitted(t *testing.T) {
	g := &guard{}
	r := newRegistry(t, openStore(t, t.TempDir()), objects.Config{
		Admit:             []objects.Admitter{g},
		NamespaceOptional: func(*objects.Kind, string) bool { return true },
	})
	as := func(name string) context.Context { return api.WithUser(t.Context(), api.User{Name: name}) }
	rename := func(o objects.Object) (objects.Object, error) {
		o.SetAnnotations(map[string]string{"a": "b"})
		return o, nil
	}
	res, err := r.Create(as("alice"), pods, "default", pod("a"), objects.WriteOptions{})
	if err != nil || decode[corev1.Pod](t, res.Stored).Labels["by"] != "alice" {
		t.Fatalf("%s, %v", res.Body.Bytes(), err)
	}
	if _, err := r.Update(as("mallory"), pods, "", "default", "a", rename, objects.WriteOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "not you") {
		t.Errorf("update: %v", err)
	}
	if _, err := r.Update(as("busy"), pods, "status", "default", "a", rename, objects.WriteOptions{}); !apierrors.IsTooManyRequests(err) {
		t.Errorf("a Status of the guard's own: %v", err)
	}
	if _, _, err := r.Delete(as("mallory"), pods, "default", "a", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("delete: %v", err)
	}
	if _, err := r.Create(as("mallory"), pods, "default", pod("b"), objects.WriteOptions{DryRun: true}); !apierrors.IsForbidden(err) {
		t.Errorf("a dry run: %v", err)
	}
	if got, err := r.Get(t.Context(), pods, "default", "a"); err != nil || got.Rev != res.Rev {
		t.Errorf("something was written: %v", err)
	}
	want := []string{
		"create pods/ a old=false", "update pods/ a old=true", "update pods/status a old=true",
		"delete pods/ a old=true", "create pods/ b old=false",
	}
	if !slices.Equal(g.seen, want) {
		t.Errorf("admission saw %q", g.seen)
	}
}

func TestTwoKindsOfOneName(t *testing.T) {
	if _, err := objects.NewRegistry(openStore(t, t.TempDir()), []*objects.Kind{pods, pods}, objects.Config{}); err == nil {
		t.Error("they were registered")
	}
}

func TestComputedKind(t *testing.T) {
	computed := &objects.Kind{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ComponentStatus"), Plural: "componentstatuses",
		New: func() objects.Object { return &corev1.ComponentStatus{} },
		Read: func(_ context.Context, _, name string) (objects.Object, error) {
			return &corev1.ComponentStatus{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
		},
	}
	r, err := objects.NewRegistry(openStore(t, t.TempDir()), []*objects.Kind{computed}, objects.Config{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Get(t.Context(), computed, "", "x")
	if err != nil || string(got.Body.Bytes()) != `{"kind":"ComponentStatus","apiVersion":"v1","metadata":{"name":"x"}}` {
		t.Errorf("%s, %v", got.Body.Bytes(), err)
	}
}
