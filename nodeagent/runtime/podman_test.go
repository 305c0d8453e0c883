package runtime_test

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/runtime"
	"bramble.dev/bramble/test/cluster"
)

// node is a user with the test image, and a runtime on its Podman.
type node struct {
	*cluster.User
	*runtime.Runtime
	state  string
	config runtime.Config
}

// with returns another runtime on the same Podman.
func (n *node) with(t testing.TB, change func(*runtime.Config)) *runtime.Runtime {
	t.Helper()
	config := n.config
	change(&config)
	return runtime.New(config)
}

// newNode makes a node; its Podman's service runs.
func newNode(t testing.TB) *node {
	t.Helper()
	n := emptyNode(t)
	n.StartPodman(t)
	return n
}

// emptyNode makes a node whose Podman's service does not run.
func emptyNode(t testing.TB) *node {
	t.Helper()
	u := cluster.ForTest(t)
	if err := u.LoadImage(t.Context()); err != nil {
		t.Fatal(err)
	}
	pause := filepath.Join(u.Home, "pause")
	cc := exec.CommandContext(t.Context(), "gcc", "-Os", "-static", "-s", "-o", pause, "../../packaging/pause/pause.c")
	if out, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("cannot build pause: %v\n%s", err, out)
	}
	state := filepath.Join(u.Home, "state")
	if err := os.Mkdir(state, 0o755); err != nil {
		t.Fatal(err)
	}
	config := runtime.Config{Socket: u.PodmanSocket(), RuntimeDir: u.RuntimeDir, StateDir: state, PauseFile: pause, Log: slog.Default(), Command: u.Command}
	return &node{User: u, Runtime: runtime.New(config), state: state, config: config}
}

// makePod makes a pod of one uid and returns the spec of a container in it.
func (n *node) makePod(t testing.TB, uid string) container.Spec {
	t.Helper()
	pod := container.PodSpec{UID: uid, Namespace: "default", Name: "web", Hostname: "web-1"}
	if err := n.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return container.Spec{
		PodUID: uid, PodNamespace: "default", PodName: "web", Name: "main", Hash: "h1",
		Image: cluster.TestImage, TerminationMessagePath: "/dev/termination-log",
	}
}

// run makes and starts a container.
func (n *node) run(t testing.TB, spec container.Spec) string {
	t.Helper()
	id, err := n.CreateContainer(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.StartContainer(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	return id
}

// only returns the pod's one container.
func (n *node) only(t testing.TB, uid string) container.State {
	t.Helper()
	p, err := n.Get(t.Context(), uid)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Containers) != 1 {
		t.Fatalf("pod %s has %d containers, want 1: %+v", uid, len(p.Containers), p)
	}
	return p.Containers[0]
}

// awaitExit waits until the pod's one container has ended.
func (n *node) awaitExit(t testing.TB, uid string) container.State {
	t.Helper()
	ticks := time.NewTicker(50 * time.Millisecond)
	defer ticks.Stop()
	for {
		if s := n.only(t, uid); s.Phase == container.Exited {
			return s
		}
		select {
		case <-ticks.C:
		case <-time.After(20 * time.Second):
			t.Fatal("the container does not end")
		}
	}
}

// mkdir makes a directory of the user's.
func (n *node) mkdir(t testing.TB, dir string) {
	t.Helper()
	if out, err := n.Command(t.Context(), "mkdir", "-p", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func shell(spec container.Spec, script string) container.Spec {
	spec.Command = []string{"sh", "-c", script}
	return spec
}

func (n *node) uid() string { return strconv.Itoa(n.UID) }
