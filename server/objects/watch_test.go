package objects_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	"bramble.dev/bramble/server/objects"
	"bramble.dev/bramble/server/store"
)

func startWatch(t *testing.T, r *objects.Registry, k *objects.Kind, ns string, opts objects.WatchOptions) *watching {
	t.Helper()
	w, err := r.Watch(k, ns, opts)
	if err != nil {
		t.Fatal(err)
	}
	return &watching{Watch: w}
}

// expect reads events and compares them, written as TYPE name.
func expect(t *testing.T, w *watching, want ...string) (last objects.WatchEvent) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for _, want := range want {
		last = next(t, ctx, w)
		meta := decode[metav1.PartialObjectMetadata](t, last.Stored)
		if got := strings.TrimSpace(fmt.Sprintf("%s %s", last.Type, meta.Name)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if meta.ResourceVersion != fmt.Sprint(last.Rev) {
			t.Errorf("%s: resourceVersion %s at revision %d", want, meta.ResourceVersion, last.Rev)
		}
	}
	return last
}

func TestListSelects(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	r := newRegistry(t, s, objects.Config{NamespaceOptional: func(*objects.Kind, string) bool { return true }})
	for i, node := range []string{"n1", "n2", "n1"} {
		p := pod(fmt.Sprint("p", i))
		p.Spec.NodeName = node
		p.Labels = map[string]string{"i": fmt.Sprint(i)}
		create(t, r, pods, p)
	}
	other := pod("p9")
	other.Namespace = "other"
	create(t, r, pods, other)
	check := func(t *testing.T, r *objects.Registry) {
		for _, c := range []struct{ ns, labels, fields, want string }{
			{"", "", "", "p0 p1 p2 p9"},
			{"default", "", "", "p0 p1 p2"},
			{"", "i in (1,2)", "", "p1 p2"},
			{"", "!i", "", "p9"},
			{"", "", "spec.nodeName=n1", "p0 p2"},
			{"", "", "spec.nodeName!=n1,status.phase=Pending", "p1 p9"},
			{"", "i=2", "spec.nodeName=n1", "p2"},
			{"", "", "metadata.name=p1", "p1"},
			{"", "", "metadata.namespace=other", "p9"},
			{"default", "", "metadata.namespace=other", ""},
		} {
			ls, _ := labels.Parse(c.labels)
			l, err := r.List(t.Context(), pods, c.ns, objects.ListOptions{Labels: ls, Fields: fields.ParseSelectorOrDie(c.fields)})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, item := range l.Items {
				names = append(names, decode[corev1.Pod](t, item).Name)
			}
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("%+v: %q", c, got)
			}
		}
	}
	check(t, r)
	_, err := r.List(t.Context(), pods, "", objects.ListOptions{Fields: fields.ParseSelectorOrDie("spec.color=red")})
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "spec.nodeName, status.phase") {
		t.Errorf("an unknown field: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// Nothing decoded is left: selectors read the stored bytes.
	check(t, newRegistry(t, openStore(t, dir), objects.Config{}))
}

func TestListInThePast(t *testing.T) {
	r := open(t)
	a := create(t, r, pods, pod("a"))
	create(t, r, pods, pod("b"))
	l, err := r.List(t.Context(), pods, "default", objects.ListOptions{At: a.Rev})
	if err != nil || l.Rev != a.Rev || len(l.Items) != 1 {
		t.Errorf("got %+v, %v", l, err)
	}
	if _, err := r.List(t.Context(), pods, "", objects.ListOptions{At: 1}); !apierrors.IsResourceExpired(err) {
		t.Errorf("an earlier run: %v", err)
	}
	if _, err := r.List(t.Context(), pods, "", objects.ListOptions{At: 1 << 60}); !apierrors.IsTimeout(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		t.Errorf("the future: %v", err)
	}
}

func TestWatchFromNowAndFromThen(t *testing.T) {
	r := open(t)
	a := create(t, r, pods, pod("a"))
	now := startWatch(t, r, pods, "default", objects.WatchOptions{})
	expect(t, now, "ADDED a")
	create(t, r, pods, pod("b"))
	update(t, r, pods, "status", "a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
	del(t, r, pods, "b", metav1.DeleteOptions{})
	expect(t, now, "ADDED b", "MODIFIED a", "DELETED b")
	then := startWatch(t, r, pods, "default", objects.WatchOptions{From: a.Rev})
	expect(t, then, "ADDED b", "MODIFIED a", "DELETED b")
	if _, err := r.Watch(pods, "", objects.WatchOptions{From: 1}); !apierrors.IsResourceExpired(err) {
		t.Errorf("an earlier run: %v", err)
	}
	for _, initial := range []bool{false, true} {
		_, err := r.Watch(pods, "", objects.WatchOptions{From: 1 << 60, SendInitialEvents: initial})
		if !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
			t.Errorf("the future: %v", err)
		}
	}
}

func TestWatchOfASelection(t *testing.T) {
	r := open(t)
	onNode := startWatch(t, r, pods, "", objects.WatchOptions{Fields: fields.ParseSelectorOrDie("spec.nodeName=n")})
	labelled := startWatch(t, r, pods, "", objects.WatchOptions{Labels: labels.SelectorFromSet(labels.Set{"x": "y"})})
	create(t, r, pods, pod("a"))
	update(t, r, pods, "binding", "a", func(p *corev1.Pod) { p.Spec.NodeName = "n" })
	expect(t, onNode, "ADDED a")
	update(t, r, pods, "", "a", func(p *corev1.Pod) { p.Labels = map[string]string{"x": "y"} })
	expect(t, onNode, "MODIFIED a")
	expect(t, labelled, "ADDED a")
	update(t, r, pods, "", "a", func(p *corev1.Pod) { p.Labels = nil })
	left := expect(t, labelled, "DELETED a")
	if got := decode[corev1.Pod](t, left.Stored); got.Labels["x"] != "y" {
		t.Errorf("the last state in the selection was %+v", got.Labels)
	}
	del(t, r, pods, "a", grace(0))
	expect(t, onNode, "MODIFIED a", "DELETED a")
	create(t, r, pods, pod("b"))
	update(t, r, pods, "", "b", func(p *corev1.Pod) { p.Labels = map[string]string{"x": "y"} })
	expect(t, labelled, "ADDED b") // and nothing of what is not selected
}

func TestInitialEvents(t *testing.T) {
	r := open(t)
	a := create(t, r, pods, pod("a"))
	create(t, r, pods, pod("b"))
	w := startWatch(t, r, pods, "default", objects.WatchOptions{From: a.Rev, SendInitialEvents: true})
	mark := expect(t, w, "ADDED a", "ADDED b", "BOOKMARK")
	if meta := decode[metav1.PartialObjectMetadata](t, mark.Stored); meta.Annotations[metav1.InitialEventsAnnotationKey] != "true" || meta.Kind != "Pod" {
		t.Errorf("the bookmark is %+v", meta)
	}
	create(t, r, pods, pod("c"))
	expect(t, w, "ADDED c")
	old := startWatch(t, r, pods, "default", objects.WatchOptions{From: 1, SendInitialEvents: true})
	expect(t, old, "ADDED a", "ADDED b", "ADDED c", "BOOKMARK")
}

// TestManyInitialEvents are more than are sent at a time.
func TestManyInitialEvents(t *testing.T) {
	r := open(t)
	var want []string
	for i := range 200 {
		name := fmt.Sprintf("p%03d", i)
		create(t, r, pods, pod(name))
		want = append(want, "ADDED "+name)
	}
	w := startWatch(t, r, pods, "default", objects.WatchOptions{SendInitialEvents: true})
	create(t, r, pods, pod("later"))
	expect(t, w, append(want, "BOOKMARK", "ADDED later")...)
}

// TestBookmarksOfABusyResource has changes come all the time, none of them selected.
func TestBookmarksOfABusyResource(t *testing.T) {
	r := newRegistry(t, openStore(t, t.TempDir()), objects.Config{
		BookmarkEvery:     300 * time.Millisecond,
		NamespaceOptional: func(*objects.Kind, string) bool { return true },
	})
	create(t, r, pods, pod("a"))
	w := startWatch(t, r, pods, "", objects.WatchOptions{Bookmarks: true, Labels: labels.SelectorFromSet(labels.Set{"x": "y"})})
	busy, rest := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; busy.Err() == nil; i++ {
			update(t, r, pods, "status", "a", func(p *corev1.Pod) { p.Status.Message = fmt.Sprint(i) })
		}
	}()
	first := expect(t, w, "BOOKMARK")
	if second := expect(t, w, "BOOKMARK"); second.Rev <= first.Rev {
		t.Errorf("bookmarks at %d and %d", first.Rev, second.Rev)
	}
	rest()
	<-done
}

func TestBookmarks(t *testing.T) {
	r := newRegistry(t, openStore(t, t.TempDir()), objects.Config{
		BookmarkEvery:     time.Millisecond,
		NamespaceOptional: func(*objects.Kind, string) bool { return true },
	})
	w := startWatch(t, r, pods, "", objects.WatchOptions{Bookmarks: true, Labels: labels.SelectorFromSet(labels.Set{"x": "y"})})
	a := create(t, r, pods, pod("a"))
	if mark := expect(t, w, "BOOKMARK"); mark.Type != watch.Bookmark || mark.Rev != a.Rev {
		t.Errorf("got %s at %d, want %d", mark.Type, mark.Rev, a.Rev)
	}
}

func TestSlowWatchIsCutOff(t *testing.T) {
	s, err := store.Open(t.Context(), store.Config{Dir: t.TempDir(), Window: store.Window{Events: 10, Bytes: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := newRegistry(t, s, objects.Config{NamespaceOptional: func(*objects.Kind, string) bool { return true }})
	w := startWatch(t, r, events, "", objects.WatchOptions{})
	for i := range 300 {
		create(t, r, events, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("e", i)}})
	}
	if err := w.Each(t.Context(), func(objects.WatchEvent) error { return nil }); !apierrors.IsResourceExpired(err) {
		t.Errorf("a slow watch: %v", err)
	}
}

func TestWatchEnds(t *testing.T) {
	s := openStore(t, t.TempDir())
	r := newRegistry(t, s, objects.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	w := startWatch(t, r, pods, "", objects.WatchOptions{})
	cancel()
	if _, err := w.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled watch: %v", err)
	}
	if err := w.Each(ctx, func(objects.WatchEvent) error { return nil }); err != nil {
		t.Errorf("a cancelled watch, to its end: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Next(t.Context()); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("with the store closed: %v", err)
	}
	if _, err := r.Create(t.Context(), pods, "default", pod("a"), objects.WriteOptions{}); err == nil || errors.Is(err, store.ErrClosed) {
		t.Errorf("a write to a closed store: %v", err)
	}
}
