package objects_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/objects"
)

func event(name string) *corev1.Event {
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Message: "of " + name}
}

func names(t *testing.T, r *objects.Registry, k *objects.Kind) string {
	t.Helper()
	l, err := r.List(t.Context(), k, "", objects.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, item := range l.Items {
		all = append(all, decode[metav1.PartialObjectMetadata](t, item).Name)
	}
	return strings.Join(all, " ")
}

// ring runs a server's life: a store, a registry and a ring, until do returns.
func ring(t *testing.T, dir string, config objects.RingConfig, do func(r *objects.Registry)) {
	t.Helper()
	s := openStore(t, dir)
	r := newRegistry(t, s, objects.Config{NamespaceOptional: func(*objects.Kind, string) bool { return true }})
	config.Kind, config.File = events, filepath.Join(dir, "events.gz")
	g := r.NewRing(config)
	if err := g.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	do(r)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A ring is bounded in bytes too: what writes events may be hostile.
func TestRingBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring(t, t.TempDir(), objects.RingConfig{MaxBytes: 100_000}, func(r *objects.Registry) {
			for i := range 5 {
				e := event(fmt.Sprint("e", i))
				e.Message = strings.Repeat("x", 40_000)
				create(t, r, events, e)
			}
			synctest.Wait()
			if got := names(t, r, events); got != "e3 e4" {
				t.Errorf("of five, two fit: %q", got)
			}
			update(t, r, events, "", "e3", func(e *corev1.Event) { e.Message = "" })
			create(t, r, events, event("e5"))
			synctest.Wait()
			if got := names(t, r, events); got != "e3 e4 e5" {
				t.Errorf("small ones fit: %q", got)
			}
		})
	})
}

func TestRing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "events.gz")
	synctest.Test(t, func(t *testing.T) {
		ring(t, dir, objects.RingConfig{Max: 3}, func(r *objects.Registry) {
			for i := range 4 {
				create(t, r, events, event(fmt.Sprint("e", i)))
			}
			synctest.Wait()
			if got := names(t, r, events); got != "e1 e2 e3" {
				t.Errorf("of four, three: %q", got)
			}
			// e1 is written again and so is the youngest.
			update(t, r, events, "", "e1", func(e *corev1.Event) { e.Count = 2 })
			create(t, r, events, event("e4"))
			synctest.Wait()
			if got := names(t, r, events); got != "e1 e3 e4" {
				t.Errorf("the oldest did not go: %q", got)
			}
			if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("it was saved too soon: %v", err)
			}
			<-time.After(40 * time.Minute)
			synctest.Wait()
			saved, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			if saved.Mode().Perm() != 0o600 {
				t.Errorf("mode %v", saved.Mode())
			}
			<-time.After(10 * time.Minute)
			synctest.Wait()
			if again, err := os.Stat(file); err != nil || !again.ModTime().Equal(saved.ModTime()) {
				t.Errorf("it was saved again though nothing changed: %v", err)
			}
			create(t, r, events, event("e5"))
		})
	})
	synctest.Test(t, func(t *testing.T) {
		ring(t, dir, objects.RingConfig{}, func(r *objects.Registry) {
			if got := names(t, r, events); got != "e1 e4 e5" {
				t.Fatalf("after a restart: %q", got)
			}
			got, err := r.Get(t.Context(), events, "default", "e1")
			if e := decode[corev1.Event](t, got); err != nil || e.Count != 2 || e.ResourceVersion != fmt.Sprint(got.Rev) || got.Rev>>32 != 2 {
				t.Errorf("%s, %v", got.Body.Bytes(), err)
			}
			<-time.After(11 * time.Minute)
			synctest.Wait()
			if got := names(t, r, events); got != "e5" {
				t.Errorf("61 minutes old: %q", got)
			}
			<-time.After(time.Hour)
			synctest.Wait()
			if got := names(t, r, events); got != "" {
				t.Errorf("all too old: %q", got)
			}
		})
	})
}

func TestRingSurvivesADamagedFile(t *testing.T) {
	dir := t.TempDir()
	ring(t, dir, objects.RingConfig{}, func(r *objects.Registry) {
		for i := range 50 {
			create(t, r, events, event(fmt.Sprint("e", i)))
		}
	})
	file := filepath.Join(dir, "events.gz")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range [][]byte{whole[:len(whole)/2], []byte("nonsense"), {}} {
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		ring(t, dir, objects.RingConfig{}, func(r *objects.Registry) { create(t, r, events, event("new")) })
	}
}

func FuzzReadRing(f *testing.F) {
	var b bytes.Buffer
	if err := objects.WriteRing(&b, `{"metadata":{"name":"a","resourceVersion":"1"}}`); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:b.Len()/2])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, body := range objects.ReadRing(b) {
			if len(body) > objects.MaxObjectBytes {
				t.Errorf("an object of %d bytes", len(body))
			}
			objects.Restamp(body, 7) // of whatever it is
		}
	})
}
