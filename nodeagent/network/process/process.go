// Package process watches processes that may not be our children: those that
// outlive the one that started them. It holds no process and starts none.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Wait blocks until process pid has ended (nil, also when there is none) or
// ctx has. It does not reap a child.
func Wait(ctx context.Context, pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot watch process %d: %w", pid, err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // PIDFD_NONBLOCK needs Linux 5.10
		_ = unix.Close(fd)
		return fmt.Errorf("cannot watch process %d: %w", pid, err)
	}
	f := os.NewFile(uintptr(fd), "pidfd") // non-blocking: waits in the runtime's poller
	stop := context.AfterFunc(ctx, func() { _ = f.Close() })
	defer func() {
		if stop() {
			_ = f.Close()
		}
	}()
	conn, err := f.SyscallConn()
	if err != nil {
		return ctx.Err()
	}
	err = conn.Read(func(fd uintptr) bool {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		return err == nil && n == 1
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Alive tells whether process pid exists and has not ended: a zombie has.
func Alive(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, ok := bytes.Cut(data, []byte(") "))
	return ok && len(rest) > 0 && rest[0] != 'Z' && rest[0] != 'X'
}

// Found is a process and its arguments, those of argv[1:].
type Found struct {
	PID  int
	Args []string
}

// Find returns the living processes of this user whose program is called name
// and that have arg among their arguments.
func Find(name, arg string) ([]Found, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found []Found
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !Alive(pid) || !own(pid) {
			continue
		}
		data, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil || len(data) == 0 {
			continue
		}
		args := strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
		program, _, _ := strings.Cut(filepath.Base(args[0]), ".") // pasta runs as pasta.avx2
		if program == name && slices.Contains(args[1:], arg) {
			found = append(found, Found{pid, args[1:]})
		}
	}
	return found, nil
}

// own tells whether pid's real user is ours. The owner of its /proc files is
// not asked: programs that dropped their rights show root there.
func own(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "Uid:" {
			return f[1] == strconv.Itoa(os.Getuid())
		}
	}
	return false
}

// Kill ends process pid and blocks until it is gone or ctx has ended.
func Kill(ctx context.Context, pid int, sig unix.Signal) error {
	if err := unix.Kill(pid, sig); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("cannot stop process %d: %w", pid, err)
	}
	return Wait(ctx, pid)
}
