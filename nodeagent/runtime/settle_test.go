package runtime_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"bramble.dev/bramble/nodeagent/container"
)

// TestEndThatPodmanMissed: where memory is short the kernel may kill conmon, and
// then nobody tells Podman that the container has ended.
func TestEndThatPodmanMissed(t *testing.T) {
	t.Parallel()
	for _, stopped := range []bool{false, true} {
		t.Run(fmt.Sprintf("stopped=%v", stopped), func(t *testing.T) {
			n := newNode(t)
			id, events := n.runWatched(t)
			out, err := n.Podman(t.Context(), "inspect", "--format", "{{.State.ConmonPid}} {{.State.Pid}}", id)
			if err != nil {
				t.Fatal(err)
			}
			var conmon, pid int
			if _, err := fmt.Fscan(strings.NewReader(out), &conmon, &pid); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(conmon, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if stopped { // Podman says it is, and has it as stopping for ever
				if err := n.StopContainer(t.Context(), id, 0); err != nil {
					t.Error(err)
				}
			} else {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				awaitPod(t, events, "u1")
			}
			if c := n.awaitExit(t, "u1"); c.ExitCode != 137 || c.FinishedAt.IsZero() {
				t.Errorf("state: %+v", c)
			}
			if err := n.Remove(t.Context(), "u1"); err != nil {
				t.Error(err)
			}
		})
	}
}

// runWatched runs a container that sleeps in pod u1, and returns the events from then
// on.
func (n *node) runWatched(t *testing.T) (id string, events <-chan container.Event) {
	t.Helper()
	id = n.run(t, shell(n.makePod(t, "u1"), "sleep 1000000"))
	if n.only(t, "u1").Phase != container.Running { // also notes its process
		t.Fatal("it does not run")
	}
	events, err := n.Events(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	<-events // connected
	return id, events
}

// awaitPod waits for an event about a pod; those about images may come first.
func awaitPod(t *testing.T, events <-chan container.Event, uid string) {
	t.Helper()
	limit := time.After(30 * time.Second)
	for {
		select {
		case e := <-events:
			if e.PodUID == uid {
				return
			}
			if e.What != container.ImagesChanged {
				t.Errorf("event %+v", e)
			}
		case <-limit:
			t.Fatalf("nobody tells of pod %s", uid)
		}
	}
}

// TestConmonKilledAlone: a container that goes on without its conmon has no output,
// and no command reaches it; it is ended, so that it can begin anew.
func TestConmonKilledAlone(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	id, events := n.runWatched(t)
	for _, name := range []string{id, "k8s_POD_u1"} {
		out, err := n.Podman(t.Context(), "inspect", "--format", "{{.State.ConmonPid}}", name)
		if err != nil {
			t.Fatal(err)
		}
		var conmon int
		if _, err := fmt.Sscan(out, &conmon); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(conmon, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	awaitPod(t, events, "u1")
	if c := n.awaitExit(t, "u1"); c.ExitCode != 137 || c.FinishedAt.IsZero() {
		t.Errorf("state: %+v", c)
	}
	if p, err := n.Get(t.Context(), "u1"); err != nil || !p.Running {
		t.Errorf("the infra container, which needs no conmon: %+v, %v", p, err)
	}
	if err := n.Remove(t.Context(), "u1"); err != nil {
		t.Error(err)
	}
}
