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
	c, err := r.prepare(ctx, t, nil, command)
	if err != nil {
		return nil, 0, err
	}
	defer c.clean()
	out := &firstBytes{limit: limit}
	c.cmd.Stdout, c.cmd.Stderr = out, out
	c.cmd.WaitDelay = lingerLimit
	code, err = c.result(ctx, c.cmd.Run())
	return out.kept, code, err
}

// inside is a command in a container, to be run by the OCI runtime.
type inside struct {
	name string // the container's
	cmd  *exec.Cmd
	note string // path of the file for the process's id
	log  string // path of the OCI runtime's log
}

// prepare makes a command that is killed when ctx ends; clean must follow. flags
// are the OCI runtime's, of its exec.
func (r *Runtime) prepare(ctx context.Context, t container.Target, flags, command []string) (*inside, error) {
	conmon := parentOf(t.PID)
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", conmon))
	m := parseMonitor(data)
	if err != nil || m.id != t.ID || m.runtime == "" {
		return nil, fmt.Errorf("cannot execute a command in container %s: %w", t.Spec.Name, container.ErrNotFound)
	}
	note, err := r.makeNote()
	if err != nil {
		return nil, fmt.Errorf("cannot execute a command in container %s: %w", t.Spec.Name, err)
	}
	c := &inside{name: t.Spec.Name, note: note, log: note + ".log"}
	args := []string{"--target", strconv.Itoa(conmon), "--user", "--mount", "--preserve-credentials", "--",
		m.runtime, "--log", c.log, "--log-format", "json", "exec", "--pid-file", note}
	args = append(append(append(args, flags...), t.ID), command...)
	c.cmd = r.config.Command(ctx, "nsenter", args...)
	c.cmd.Cancel = func() error {
		killNoted(note)
		return c.cmd.Process.Kill()
	}
	return c, nil
}

func (c *inside) clean() {
	_ = os.Remove(c.note)
	_ = os.Remove(c.log) // the runtime may have had nothing to say
}

// result takes what a run returned for the command's exit code.
func (c *inside) result(ctx context.Context, err error) (code int, _ error) {
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case errors.As(err, &exit):
		return exit.ExitCode(), nil
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return 0, fmt.Errorf("cannot execute a command in container %s: %w", c.name, err)
	}
	return 0, nil
}

// started reports whether the OCI runtime has started the command.
func (c *inside) started() bool {
	info, err := os.Stat(c.note)
	return err == nil && info.Size() > 0
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
