package runtime_test

import (
	"testing"

	"bramble.dev/bramble/nodeagent/container"
)

// TestAStartThatPodmanDidNotNote makes what a kill of Podman's service leaves
// between the runtime's start and Podman's note of it: a container that runs
// though Podman has it as initialized, and refuses to start ever after.
func TestAStartThatPodmanDidNotNote(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	id, err := n.CreateContainer(t.Context(), shell(n.makePod(t, "u1"), "sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Podman(t.Context(), "init", id); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Podman(t.Context(), "unshare", "runc", "--root", n.RuntimeDir+"/runc", "start", id); err != nil {
		t.Fatal(err)
	}
	if out, err := n.Podman(t.Context(), "start", id); err == nil {
		t.Fatalf("podman starts it itself now, the case is gone: %s", out)
	}
	if err := n.StartContainer(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	p, err := n.Get(t.Context(), "u1")
	if err != nil || len(p.Containers) != 1 || p.Containers[0].Phase != container.Running {
		t.Errorf("got %+v, %v", p.Containers, err)
	}
}
