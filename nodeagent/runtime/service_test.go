package runtime_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/runtime"
)

// serve runs a Service for n until the returned function is called, or t ends.
// What it says comes on the channel.
func (n *node) serve(t *testing.T, change func(*runtime.Service)) (up chan error, stop func()) {
	t.Helper()
	up = make(chan error, 100)
	s := &runtime.Service{Socket: n.PodmanSocket(), RuntimeDir: n.RuntimeDir, Command: n.Command, Interval: 50 * time.Millisecond,
		Log: slog.Default(), Idle: n.Idle, OnChange: func(err error) { up <- err }}
	if change != nil {
		change(s)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	}
	t.Cleanup(stop)
	return up, stop
}

func (n *node) awaitUp(t *testing.T, up chan error) {
	t.Helper()
	select {
	case err := <-up:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("podman's service is not up")
	}
}

// startService makes the socket's directory, runs a Service as serve does, and
// returns when Podman answers.
func (n *node) startService(t *testing.T) (up chan error, stop func()) {
	t.Helper()
	n.mkdir(t, filepath.Dir(n.PodmanSocket()))
	up, stop = n.serve(t, nil)
	n.awaitUp(t, up)
	return up, stop
}

// servers returns the processes of Podman's service.
func (n *node) servers(t *testing.T) []int {
	t.Helper()
	all, err := n.Processes()
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, pid := range all {
		if runtime.IsPodman(pid) {
			found = append(found, pid)
		}
	}
	return found
}

func TestServiceIsStartedAdoptedAndStartedAgain(t *testing.T) {
	t.Parallel()
	n := emptyNode(t)
	n.mkdir(t, filepath.Dir(n.PodmanSocket()))
	fetching := filepath.Join(n.Home, "fetching")
	n.mkdir(t, fetching)
	leave := func() {
		n.mkdir(t, filepath.Join(fetching, "storage1"))
		if err := os.WriteFile(filepath.Join(fetching, "storage1/1"), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	left := func() int {
		entries, err := os.ReadDir(fetching)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	with := func(s *runtime.Service) { s.TempDir = fetching }
	leave()
	up, stop := n.serve(t, with)
	n.awaitUp(t, up)
	if left() != 0 {
		t.Error("a service is started on what another had fetched")
	}
	id := n.run(t, shell(n.makePod(t, "u1"), "sleep 1000"))
	before := n.servers(t)

	stop() // as an agent's end
	leave()
	up, stop = n.serve(t, with)
	n.awaitUp(t, up)
	if left() != 1 {
		t.Error("what a service that goes on has fetched is removed")
	}
	if after := n.servers(t); len(after) == 0 || after[0] != before[0] {
		t.Errorf("the service was not adopted: %v, then %v", before, after)
	}
	for _, pid := range n.servers(t) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	awaitTurn(t, up, true)
	if left() != 0 {
		t.Error("what a killed service has fetched stays")
	}
	if s := n.only(t, "u1"); s.ID != id || s.Phase != container.Running {
		t.Errorf("after the service was killed: %+v", s)
	}
	stop()
}

func TestServiceThatHasGrownIsStartedAnew(t *testing.T) {
	t.Parallel()
	n := emptyNode(t)
	n.mkdir(t, filepath.Dir(n.PodmanSocket()))
	idle := make(chan bool, 1)
	up, _ := n.serve(t, func(s *runtime.Service) {
		s.MaxRSS = 1 // any process is larger
		s.Idle = func() bool {
			select {
			case <-idle:
				return true
			default:
				return false
			}
		}
	})
	n.awaitUp(t, up)
	before := n.servers(t)
	idle <- true
	n.awaitUp(t, up)
	if after := n.servers(t); len(after) == 0 || after[len(after)-1] == before[len(before)-1] {
		t.Errorf("the service was not started anew: %v, then %v", before, after)
	}
}

// awaitDown waits until the service is said not to answer.
func awaitDown(t *testing.T, up chan error) {
	t.Helper()
	select {
	case err := <-up:
		if err == nil || !strings.Contains(err.Error(), "does not answer") {
			t.Fatalf("the service is said to be %v, want that it does not answer", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("nobody was told that podman's service does not answer")
	}
}

// awaitTurn waits until the service is said to answer or not, whatever is said
// before: on a busy machine an impatient agent may lose patience with a service
// that is well.
func awaitTurn(t *testing.T, up chan error, answers bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		select {
		case err := <-up:
			if (err == nil) == answers {
				return
			}
		case <-deadline:
			t.Fatalf("nobody was told that podman's service answers: %v", answers)
		}
	}
}

// TestServiceThatHangsIsStartedAnew: a node must not seem Ready for ever with a
// service that accepts and never answers, in its watch or at an agent's start.
func TestServiceThatHangsIsStartedAnew(t *testing.T) {
	t.Parallel()
	n := emptyNode(t)
	n.mkdir(t, filepath.Dir(n.PodmanSocket()))
	impatient := func(s *runtime.Service) { s.Patience = 500 * time.Millisecond }
	up, stop := n.serve(t, impatient)
	n.awaitUp(t, up)
	for _, when := range []string{"in the watch", "at an agent's start"} {
		hung := n.servers(t)
		for _, pid := range hung {
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
		}
		if when == "at an agent's start" {
			stop()
			up, stop = n.serve(t, impatient)
		}
		awaitTurn(t, up, false)
		awaitTurn(t, up, true)
		if now := n.servers(t); len(now) == 0 || slices.Contains(hung, now[len(now)-1]) {
			t.Errorf("%s: the hung service was not replaced: %v, then %v", when, hung, now)
		}
	}
}

// TestStrangerOnTheSocketIsLeftAlone: whoever else listens there is not ours to
// end; the node says what is wrong until that is over.
func TestStrangerOnTheSocketIsLeftAlone(t *testing.T) {
	t.Parallel()
	n := emptyNode(t)
	n.mkdir(t, filepath.Dir(n.PodmanSocket()))
	l, err := net.Listen("unix", n.PodmanSocket())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	up, _ := n.serve(t, func(s *runtime.Service) { s.Patience = 20 * time.Millisecond })
	for range 6 { // longer than our own service may be silent
		awaitDown(t, up)
	}
	if err := l.Close(); err != nil { // which removes the socket
		t.Fatal(err)
	}
	awaitTurn(t, up, true)
}
