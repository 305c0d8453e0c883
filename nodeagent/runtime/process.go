package runtime

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// process is a process that need not be a child: its end can be waited for.
// The methods of a nil process do nothing.
type process struct {
	pid   int
	file  *os.File    // a pidfd, in the runtime's poller
	child *os.Process // to be reaped, where it, or the process that waits for it, is a child of ours
}

func openProcess(pid int) (*process, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot watch process %d: %w", pid, err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("cannot watch process %d: %w", pid, err)
	}
	return &process{pid: pid, file: os.NewFile(uintptr(fd), "pidfd")}, nil
}

func (p *process) close() {
	if p != nil {
		_ = p.file.Close()
	}
}

// wait waits for the process's end, at most for limit or until ctx ends, and
// says whether it has ended.
func (p *process) wait(ctx context.Context, limit time.Duration) bool {
	if err := p.file.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return false
	}
	stop := context.AfterFunc(ctx, func() { _ = p.file.SetReadDeadline(time.Now()) })
	defer stop()
	conn, err := p.file.SyscallConn()
	if err != nil {
		return false
	}
	ended := false
	_ = conn.Read(func(fd uintptr) bool { // its error is the deadline
		polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(polled, 0)
		ended = err == nil && n == 1
		return ended
	})
	if ended && p.child != nil {
		_, _ = p.child.Wait() // it ends with the process, if it is another
		p.child = nil
	}
	return ended
}

// end asks the process to end, and makes it after endLimit.
func (p *process) end(ctx context.Context) {
	if p == nil {
		return
	}
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		_ = p.signal(signal) // it may have ended
		if p.wait(ctx, endLimit) || ctx.Err() != nil {
			return
		}
	}
}

// signal sends a signal; ESRCH when the process has ended.
func (p *process) signal(signal unix.Signal) error {
	conn, err := p.file.SyscallConn() // Fd would take the descriptor out of the poller
	if err != nil {
		return err
	}
	var sent error
	if err := conn.Control(func(fd uintptr) { sent = unix.PidfdSendSignal(int(fd), signal, nil, 0) }); err != nil {
		return err
	}
	return sent
}

// rss is the process's resident memory in bytes, 0 when it has ended.
func (p *process) rss() int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.pid))
	fields := strings.Fields(string(data))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// isPodman says whether a process is Podman's API service.
func isPodman(pid int) bool {
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && bytes.Contains(args, []byte("podman\x00")) && bytes.Contains(args, []byte("\x00service\x00"))
}

// dialer connects to a unix socket and notes the process that listens on it.
func dialer(socket string, pid *atomic.Int64) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if err != nil {
			return nil, err
		}
		raw, err := conn.(*net.UnixConn).SyscallConn()
		if err != nil {
			return conn, nil // then its process is not known
		}
		_ = raw.Control(func(fd uintptr) {
			if peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
				pid.Store(int64(peer.Pid))
			}
		})
		return conn, nil
	}
}
