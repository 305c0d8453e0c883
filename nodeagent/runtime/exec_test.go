package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/container"
)

// TestExec runs commands in a container: with its environment, its output
// bounded, and all of it killed when the time is over.
func TestExec(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	spec := shell(n.makePod(t, "u1"), "exec sleep 1000")
	spec.Env = []container.Env{{Name: "COLOUR", Value: "blue"}}
	n.run(t, spec)
	n.mkdir(t, filepath.Join(n.RuntimeDir, "bramble/exec"))
	s := n.only(t, "u1")
	target := container.Target{ID: s.ID, PID: s.PID, Spec: &corev1.Container{Name: "main"}}

	out, code, err := n.execute(t, target, 10<<10, "sh", "-c", "echo $COLOUR; echo bad >&2; exit 3")
	lines := strings.Fields(string(out)) // the OCI runtime copies the two streams as they come
	slices.Sort(lines)
	if strings.Join(lines, " ") != "bad blue" || code != 3 || err != nil {
		t.Errorf("got %q, %d, %v", out, code, err)
	}
	if _, code, err = n.execute(t, target, 10<<10, "no-such-command"); code == 0 || err != nil {
		t.Errorf("no such command: got %d, %v", code, err)
	}
	out, code, err = n.execute(t, target, 1000, "head", "-c", "100000", "/dev/zero")
	if len(out) != 1000 || code != 0 || err != nil {
		t.Errorf("got %d bytes, %d, %v", len(out), code, err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	began := time.Now()
	if _, _, err = n.Exec(ctx, target, []string{"sh", "-c", "sleep 777 & sleep 777; true"}, 100); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the deadline", err)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("it took %v", took)
	}
	for range 100 {
		if left := n.processes(t, "sleep\x00777"); left == 0 {
			break
		}
		<-time.After(20 * time.Millisecond)
	}
	if left := n.processes(t, "sleep\x00777"); left != 0 {
		t.Errorf("%d processes of the command are left", left)
	}
	notes, _ := filepath.Glob(filepath.Join(n.RuntimeDir, "bramble/exec/*"))
	if len(notes) != 0 {
		t.Errorf("left: %v", notes)
	}

	for _, tty := range []bool{false, true} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		_, err := n.ExecStreams(ctx, target, []string{"cat", "/dev/zero"}, container.Streams{Stdout: &refuser{after: 3}, TTY: tty})
		if !errors.Is(err, errRefused) {
			t.Errorf("a client that takes no more of a flood (terminal: %v): %v", tty, err)
		}
		cancel()
	}

	target.ID = "0123"
	if _, _, err = n.Exec(t.Context(), target, []string{"true"}, 100); !errors.Is(err, container.ErrNotFound) {
		t.Errorf("another container: %v", err)
	}
}

// refuser takes some writes and then no more.
type refuser struct{ after int }

var errRefused = errors.New("refused")

func (r *refuser) Write(p []byte) (int, error) {
	if r.after--; r.after < 0 {
		return 0, errRefused
	}
	return len(p), nil
}

func (n *node) execute(t *testing.T, target container.Target, limit int, command ...string) ([]byte, int, error) {
	t.Helper()
	began := time.Now()
	defer func() { t.Logf("%v took %v", command, time.Since(began)) }()
	return n.Exec(t.Context(), target, command, limit)
}

// processes counts the user's processes whose command line contains part.
func (n *node) processes(t *testing.T, part string) (count int) {
	t.Helper()
	pids, err := n.Processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.Contains(string(data), part) {
			count++
		}
	}
	return count
}
