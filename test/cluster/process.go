package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Process is a program that a test started. Its output is kept in a file and
// shown when the test fails.
type Process struct {
	t    testing.TB
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	err  error         // of Wait; valid after done
}

// start starts cmd, appending its output to the file log, and kills it when t ends.
func start(t testing.TB, cmd *exec.Cmd, log string) *Process {
	t.Helper()
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatalf("cannot start %s: %v", cmd.Path, err)
	}
	p := &Process{t: t, cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		ended := p.Ended()
		p.Kill()
		if t.Failed() && !ended {
			showTail(t, log)
		}
	})
	return p
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill kills the process at once and returns when it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Stop asks the process to end, and fails the test if it does not in 15 s.
func (p *Process) Stop() {
	p.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(15 * time.Second):
		p.t.Errorf("%s does not end 15 s after SIGTERM", filepath.Base(p.cmd.Path))
		p.Kill()
	}
}

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func showTail(t testing.TB, log string) {
	data, err := os.ReadFile(log)
	if err != nil {
		return
	}
	const tail = 6000
	if len(data) > tail {
		data = data[len(data)-tail:]
	}
	t.Logf("--- end of %s:\n%s", log, data)
}
