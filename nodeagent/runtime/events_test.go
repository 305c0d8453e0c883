package runtime_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/runtime"
)

// await reads events until one is as wanted.
func await(t *testing.T, events <-chan container.Event, want container.Event) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for {
		select {
		case e := <-events:
			if e == want {
				return
			}
		case <-limit:
			t.Fatalf("no event %+v", want)
		}
	}
}

func TestEventsOutliveThePodmanService(t *testing.T) {
	t.Parallel()
	n := emptyNode(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events, err := n.Events(ctx) // nobody answers yet
	if err != nil {
		t.Fatal(err)
	}
	pid := n.StartPodman(t)
	await(t, events, container.Event{What: "connected"})
	id := n.run(t, shell(n.makePod(t, "u1"), "exit 1"))
	await(t, events, container.Event{PodUID: "u1", ContainerID: id, What: "died"})

	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	n.StartPodman(t)
	await(t, events, container.Event{What: "connected"})
	if err := n.RemoveContainer(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	await(t, events, container.Event{PodUID: "u1", ContainerID: id, What: "remove"})
	cancel()
	for range events { // until it is closed
	}
}

// TestEventsThatCannotBeHadAreAskedForEverLessOften: Podman answers, and has no
// events, as with a journal that it may not read.
func TestEventsThatCannotBeHadAreAskedForEverLessOften(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	socket := filepath.Join(dir, "podman.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan time.Time)
	podman := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/_ping") {
			return
		}
		asked <- time.Now()
		http.Error(w, `{"cause":"no journal","message":"no journal","response":500}`, http.StatusInternalServerError)
	}))
	podman.Listener = listener
	podman.Start()
	defer podman.Close()
	r := runtime.New(runtime.Config{Socket: socket, RuntimeDir: dir, StateDir: dir, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events, err := r.Events(ctx)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for range events { // until it is closed
		}
	}()
	first, pause := <-asked, time.Duration(0)
	for range 3 {
		next := <-asked
		pause, first = next.Sub(first), next
	}
	if pause < 600*time.Millisecond {
		t.Errorf("asked for the fourth time %v after the third", pause)
	}
}

// The clock is a day ahead when the agent subscribes, and is set back then: what
// happens is told all the same.
func TestEventsGoOnWhenTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	var asked atomic.Int32
	set := runtime.New(runtime.Config{Socket: n.PodmanSocket(), RuntimeDir: n.RuntimeDir, StateDir: n.state, Log: slog.Default(), Command: n.Command,
		Now: func() time.Time {
			if asked.Add(1) == 1 {
				return time.Now().Add(24 * time.Hour)
			}
			return time.Now()
		}})
	id := n.run(t, shell(n.makePod(t, "u1"), "exit 1"))
	events, err := set.Events(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	await(t, events, container.Event{What: "connected"})
	await(t, events, container.Event{What: "connected"})
	if err := n.RemoveContainer(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	await(t, events, container.Event{PodUID: "u1", ContainerID: id, What: "remove"})
}
