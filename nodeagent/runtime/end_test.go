package runtime_test

import (
	"strings"
	"testing"
	"time"
)

// TestHowAContainerEnds: by its own stop signal, with the end of its log as the
// message where it left none and failed; its pod is halted and keeps it.
func TestHowAContainerEnds(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	spec := shell(n.makePod(t, "u1"), "trap 'echo last words; exit 7' USR1; seq 2000; echo ready >/tmp/ready; while :; do sleep 0.05; done")
	spec.StopSignal, spec.MessageFromLog, spec.Sandbox = "SIGUSR1", true, "s1"
	id := n.run(t, spec)
	for range 200 {
		if out, err := n.Podman(t.Context(), "exec", id, "cat", "/tmp/ready"); err == nil && strings.Contains(out, "ready") {
			break
		}
		<-time.After(20 * time.Millisecond)
	}
	if err := n.StopContainer(t.Context(), id, 20); err != nil {
		t.Fatal(err)
	}
	s := n.awaitExit(t, "u1")
	if s.ExitCode != 7 || s.Sandbox != "s1" {
		t.Errorf("exit code %d, sandbox %q", s.ExitCode, s.Sandbox)
	}
	lines := strings.Split(s.TerminationMessage, "\n")
	if len(lines) != 81 || lines[79] != "last words" || lines[78] != "2000" {
		t.Errorf("the message has %d lines: %q", len(lines), s.TerminationMessage)
	}
	for range 2 {
		if err := n.Halt(t.Context(), "u1"); err != nil {
			t.Fatal(err)
		}
	}
	if p, err := n.Get(t.Context(), "u1"); err != nil || p.Running || len(p.Containers) != 1 {
		t.Errorf("the halted pod: %+v, %v", p, err)
	}
}
