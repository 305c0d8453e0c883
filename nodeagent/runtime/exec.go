package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"bramble.dev/bramble/nodeagent/container"
)

// lingerLimit is how long processes that a command left behind may hold its output.
const lingerLimit = 500 * time.Millisecond

// Exec runs a command in a running container and returns at most limit bytes of
// what it says, and its exit code. When ctx ends, the command's process group is
// killed and the error is ctx's. A container that does not run is
// container.ErrNotFound.
//
// It is the OCI runtime's exec inside Podman's namespaces: Podman itself is not
// asked, takes about a second for it, and writes its database.
func (r *Runtime) Exec(ctx context.Context, t container.Target, command []string, limit int) (output []byte, code int, err error) {
	conmon := parentOf(t.PID)
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", conmon))
	m := parseMonitor(data)
	if err != nil || m.id != t.ID || m.runtime == "" {
		return nil, 0, fmt.Errorf("cannot execute a command in container %s: %w", t.Spec.Name, container.ErrNotFound)
	}
	note, err := r.makeNote()
	if err != nil {
		return nil, 0, fmt.Errorf("cannot execute a command in container %s: %w", t.Spec.Name, err)
	}
	defer os.Remove(note)
	args := append([]string{"--target", strconv.Itoa(conmon), "--user", "--mount", "--preserve-credentials", "--",
		m.runtime, "exec", "--pid-file", note, t.ID}, command...)
	cmd := r.config.Command(ctx, "nsenter", args...)
	out := &firstBytes{limit: limit}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = lingerLimit
	cmd.Cancel = func() error {
		killNoted(note)
		return cmd.Process.Kill()
	}
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return out.kept, 0, ctx.Err()
	case errors.As(err, &exit):
		return out.kept, exit.ExitCode(), nil
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return out.kept, 0, fmt.Errorf("cannot execute a command in container %s: %w", t.Spec.Name, err)
	}
	return out.kept, 0, nil
}

// makeNote makes an empty file, in memory, for the id of a command's process.
func (r *Runtime) makeNote() (string, error) {
	dir := filepath.Join(r.config.RuntimeDir, "bramble", "exec")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, "pid-*")
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

// killNoted kills the process group of a command. The OCI runtime makes it the
// leader of a session.
func killNoted(note string) {
	data, err := os.ReadFile(note)
	if err != nil {
		return
	}
	if pid, err := strconv.Atoi(string(data)); err == nil && pid > 1 {
		_ = unix.Kill(-pid, unix.SIGKILL) // it may have ended
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// firstBytes keeps the first limit bytes of what is written to it.
type firstBytes struct {
	limit int
	kept  []byte
}

func (b *firstBytes) Write(p []byte) (int, error) {
	b.kept = append(b.kept, p[:min(len(p), b.limit-len(b.kept))]...)
	return len(p), nil
}
