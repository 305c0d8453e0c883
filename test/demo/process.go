package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// background starts a program of ours as the demo's user, its output in a log
// file, and leaves it running.
func (d *demo) background(log, program string, args ...string) error {
	if err := d.installPrograms(); err != nil {
		return err
	}
	out, err := os.OpenFile(filepath.Join(d.user.Home, log+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := d.user.Command(context.Background(), filepath.Join(d.binOfUser(), program), args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}

// installPrograms copies bin/ to where the demo's user may read it: the
// checkout may lie below a home that is closed to others.
func (d *demo) installPrograms() error {
	if _, err := os.Stat(filepath.Join(d.binOfUser(), "bramble-agent")); err == nil {
		return nil
	}
	if out, err := exec.Command("cp", "-r", d.bin, d.user.Home+"/").CombinedOutput(); err != nil {
		return fmt.Errorf("cannot copy the programs: %s", out)
	}
	return nil
}

// running reports whether the demo's user runs a program.
func (d *demo) running(program string) bool {
	pids, err := d.user.Processes()
	if err != nil {
		return false
	}
	for _, pid := range pids {
		line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if err == nil && filepath.Base(strings.Split(string(line), "\x00")[0]) == program {
			return true
		}
	}
	return false
}

// output runs cmd and puts what it said into the error.
func output(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, out)
	}
	return nil
}

// poll asks every 100 ms until done says so, or the limit has passed.
func poll(ctx context.Context, limit time.Duration, done func(context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for !done(ctx) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
	return nil
}
