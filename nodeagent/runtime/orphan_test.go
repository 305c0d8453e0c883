package runtime_test

import (
	"os/exec"
	"strconv"
	"testing"
	"time"

	"bramble.dev/bramble/nodeagent/container"
)

// TestForgottenContainersEnd: Podman's service, killed while it starts a
// container, leaves conmon and a first process that nobody will ever let go on.
// A shell plays both here; a real conmon beside it is left alone.
func TestForgottenContainersEnd(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	live := n.run(t, shell(n.makePod(t, "u2"), "sleep 1000000"))
	for name, end := range map[string]func() error{
		"Remove": func() error { return n.Remove(t.Context(), "u1") },
		"List":   func() error { _, err := n.List(t.Context()); return err },
	} {
		orphan := n.Command(t.Context(), "/bin/sh", "-c", "sleep 1000000; :", "-n", "k8s_main_web_default_u1_0")
		orphan.Args[0] = "/usr/bin/conmon"
		if err := orphan.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- orphan.Wait() }()
		awaitChild(t, orphan.Process.Pid)
		if err := end(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Errorf("%s leaves it", name)
			_ = orphan.Process.Kill()
		}
	}
	if c := n.only(t, "u2"); c.ID != live || c.Phase != container.Running {
		t.Errorf("the live container is %+v", c)
	}
}

// awaitChild waits until a process has a child.
func awaitChild(t *testing.T, pid int) {
	t.Helper()
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	for exec.CommandContext(t.Context(), "pgrep", "-P", strconv.Itoa(pid)).Run() != nil {
		<-ticks.C
	}
}
