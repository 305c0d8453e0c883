package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// child is a program that was started here and outlives the demo.
type child struct {
	name, log string
	ended     chan struct{} // closed when the program has ended
}

// background starts a program of ours as the demo's user and leaves it running.
func (d *demo) background(log, program string, args ...string) (*child, error) {
	cmd := d.user.Command(context.Background(), filepath.Join(d.binOfUser(), program), args...)
	return begin(cmd, filepath.Join(d.user.Home, log+".log"))
}

// begin starts cmd, its output in the file log.
func begin(cmd *exec.Cmd, log string) (*child, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{name: filepath.Base(cmd.Path), log: log, ended: make(chan struct{})}
	go func() { // until the program ends, or the demo does
		_ = cmd.Wait()
		close(c.ended)
	}()
	return c, nil
}

// await asks every 100 ms until done says so. It fails when the limit has
// passed, and at once when the program ends, with the program's last words. A
// nil child was started before and is not watched.
func (c *child) await(ctx context.Context, limit time.Duration, what string, done func(context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var ended chan struct{}
	if c != nil {
		ended = c.ended
	}
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for !done(ctx) {
		select {
		case <-ended:
			return fmt.Errorf("%s ended: %s", c.name, lastLine(c.log))
		case <-ctx.Done():
			return fmt.Errorf("%s in %v", what, limit)
		case <-ticker.C:
		}
	}
	return nil
}

// lastLine is the end of a log, for people.
func lastLine(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	data = bytes.TrimSpace(data)
	return string(data[bytes.LastIndexByte(data, '\n')+1:])
}

// installPrograms copies bin/ to where the demo's user may read it: the
// checkout may lie below a home that is closed to others. Where other programs
// of ours run, they are ended, to be started anew; pods run on.
func (d *demo) installPrograms(ctx context.Context) error {
	if exec.CommandContext(ctx, "diff", "--recursive", "--brief", d.bin, d.binOfUser()).Run() == nil {
		return nil // the same
	}
	if err := d.end(ctx, "bramble-agent", "bramble-network", "bramble-server"); err != nil {
		return err
	}
	if err := os.RemoveAll(d.binOfUser()); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "cp", "-r", d.bin, d.binOfUser()).CombinedOutput(); err != nil {
		return fmt.Errorf("cannot copy the programs: %s", out)
	}
	return nil
}

// end stops programs of ours, one after the other.
func (d *demo) end(ctx context.Context, programs ...string) error {
	for _, program := range programs {
		for _, pid := range d.pids(program) {
			if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
				continue // it has ended
			}
			none := func(context.Context) bool { return !slices.Contains(d.pids(program), pid) }
			if err := (*child)(nil).await(ctx, 15*time.Second, program+" did not end", none); err != nil {
				return err
			}
		}
	}
	return nil
}

// pids are the processes of the demo's user that run a program.
func (d *demo) pids(program string) []int {
	pids, err := d.user.Running(program)
	if err != nil {
		return nil
	}
	return pids
}

// output runs cmd and puts what it said into the error.
func output(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, out)
	}
	return nil
}
