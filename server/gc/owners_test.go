package gc_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/gc"
)

// restless is a registry in which another object changes ten times a second, and
// where the first look for the owner of "orphan" fails.
type restless struct {
	looks   int
	deleted chan string
}

func (r *restless) FollowObjects(ctx context.Context, each func(gc.Object, bool)) error {
	owned := func(name string) gc.Object {
		return gc.Object{Ref: gc.Ref{Name: name}, Owners: []metav1.OwnerReference{{Name: "owner of " + name}}}
	}
	each(owned("orphan"), false)
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticks.C:
			each(owned("other"), false)
		}
	}
}

func (r *restless) Lookup(_ context.Context, owner metav1.OwnerReference, _ string) (*gc.Object, bool, error) {
	switch owner.Name {
	case "owner of orphan":
		if r.looks++; r.looks == 1 {
			return nil, true, errors.New("the disk is busy")
		}
		return nil, true, nil
	case "orphan", "other":
		return &gc.Object{Ref: gc.Ref{Name: owner.Name}, Owners: []metav1.OwnerReference{{Name: "owner of " + owner.Name}}}, true, nil
	}
	return &gc.Object{Ref: gc.Ref{Name: owner.Name}}, true, nil
}

func (r *restless) Delete(_ context.Context, ref gc.Ref, _ metav1.DeletionPropagation) error {
	r.deleted <- ref.Name
	return nil
}

func (r *restless) Edit(context.Context, gc.Ref, func(*gc.Object)) error { return nil }

// However much else changes, what failed is tried again in its time.
func TestFailuresAreRetriedAmongChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &restless{deleted: make(chan string, 1)}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- gc.NewOwners(r, slog.New(slog.DiscardHandler)).Run(ctx) }()
		select {
		case name := <-r.deleted:
			if name != "orphan" {
				t.Errorf("%s is deleted", name)
			}
		case <-time.After(2 * time.Second):
			t.Error("the orphan is not deleted")
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	})
}
