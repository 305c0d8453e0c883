package wayout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"bramble.dev/bramble/nodeagent/network/netns"
	"bramble.dev/bramble/nodeagent/network/process"
)

// running is a program that is the way out, started by us or by a network
// process before us.
type running struct {
	name    string
	pid     int
	cmd     *exec.Cmd     // nil when it is no child of ours
	logFile string        // of a child
	ended   chan struct{} // closed when it has ended
}

// adopt returns the running way out if it is what c wants; others are ended,
// as is one whose link is not in the namespace: that one serves a namespace
// which was pinned there before.
func adopt(ctx context.Context, c Config) (*running, error) {
	var keep *running
	linked, err := linkUp(c.Path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, p := range programs() {
		found, err := process.Find(p.name, c.Path)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			wanted := linked && (c.Program == "" || c.Program == p.name)
			if wanted && keep == nil && slices.Equal(f.Args, p.args(c)) {
				keep = &running{name: p.name, pid: f.PID}
			} else if err := process.Kill(ctx, f.PID, unix.SIGKILL); err != nil {
				return nil, err
			}
		}
	}
	return keep, nil
}

// StopAll ends all ways out of the namespace at path.
func StopAll(ctx context.Context, path string) error {
	_, err := adopt(ctx, Config{Path: path, Program: "none"})
	return err
}

// start starts p in a session of its own, writing to logFile: it must not end
// with us, nor be ended by a pipe that we no longer read.
func start(p program, c Config, logFile string) (*running, error) {
	out, err := os.OpenFile(logFile, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(p.name, p.args(c)...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &running{name: p.name, pid: cmd.Process.Pid, cmd: cmd, logFile: logFile}, nil
}

// watch closes ended when the program has ended. stop ends the watching.
func (r *running) watch(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	r.ended = make(chan struct{})
	done := make(chan struct{})
	go func() { // ends with the program or with stop, which waits for it
		defer close(done)
		if process.Wait(ctx, r.pid) == nil {
			close(r.ended)
		}
	}()
	return func() { cancel(); <-done }
}

// comeUp blocks until the program has set its link up in the namespace.
func (r *running) comeUp(ctx context.Context, c Config) error {
	limit := time.NewTimer(comeUp)
	defer limit.Stop()
	tick := time.NewTicker(30 * time.Millisecond)
	defer tick.Stop()
	for {
		up, err := linkUp(c.Path)
		if err != nil || up {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.ended:
			return fmt.Errorf("it ended: %s", r.lastWords())
		case <-limit.C:
			return errors.New("it did not set up its link in time")
		case <-tick.C:
		}
	}
}

// end ends and reaps the program. When ctx has ended it is left to outlive us.
func (r *running) end(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	err := process.Kill(ctx, r.pid, unix.SIGKILL)
	if r.cmd != nil {
		_ = r.cmd.Wait() // its exit status tells nothing that lastWords does not
	}
	return err
}

// lastWords is the signal that ended the program, where one did, else what it
// wrote last: the reason, with both programs.
func (r *running) lastWords() string {
	const unknown = "it gave no reason"
	if r.cmd == nil {
		return unknown
	}
	if state := r.cmd.ProcessState; state != nil && !state.Exited() {
		return state.String()
	}
	data, err := os.ReadFile(r.logFile)
	if err != nil {
		return unknown
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	for _, line := range slices.Backward(lines) {
		if len(line) > 0 && !bytes.Contains(line, []byte("to syslog")) {
			return string(line)
		}
	}
	return unknown
}

// linkUp tells whether the link in the namespace has its default route.
func linkUp(path string) (up bool, err error) {
	err = netns.Do(path, func() error {
		link, err := netlink.LinkByName(linkName)
		if errors.As(err, new(netlink.LinkNotFoundError)) {
			return nil
		}
		if err != nil {
			return err
		}
		routes, err := netlink.RouteList(link, netlink.FAMILY_V4)
		for _, route := range routes {
			up = up || route.Dst == nil || route.Dst.IP.Equal(net.IPv4zero)
		}
		return err
	})
	return up, err
}

// routeChanges tells of changes of the host's IPv4 routes until ctx ends.
func routeChanges(ctx context.Context) (<-chan struct{}, error) {
	updates := make(chan netlink.RouteUpdate)
	if err := netlink.RouteSubscribe(updates, ctx.Done()); err != nil {
		return nil, fmt.Errorf("cannot watch the host's routes: %w", err)
	}
	changes := make(chan struct{}, 1)
	go func() { // ends with updates, which netlink closes when ctx has ended
		for range updates {
			select {
			case changes <- struct{}{}:
			default:
			}
		}
	}()
	return changes, nil
}
