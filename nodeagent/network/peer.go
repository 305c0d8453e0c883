package network

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// peerListener takes connections of our own user only. The socket's mode says
// so already; this holds even where somebody passes the socket on.
type peerListener struct {
	*net.UnixListener
	log *slog.Logger
}

func (l peerListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		uid, err := peerUID(conn)
		if err == nil && uid == os.Getuid() {
			return conn, nil
		}
		l.log.Warn("refused a connection of another user", "uid", uid, "err", err)
		_ = conn.Close()
	}
}

func peerUID(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return -1, err
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, credErr); err != nil {
		return -1, err
	}
	return int(cred.Uid), nil
}

// ErrRunning is returned by Run when another network process of the user runs.
var ErrRunning = errors.New("another network process of this user is running")

// lock makes us the only network process of this user for as long as the
// returned file is open. It is a record lock, so that the kernel knows whose.
func (s *Server) lock() (*os.File, error) {
	f, err := os.OpenFile(s.files.lock(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		return nil, errors.Join(fmt.Errorf("%w (process %d)", ErrRunning, holder(f)), f.Close())
	}
	return f, nil
}

// holder returns the id of the process that holds the lock, or 0.
func holder(f *os.File) int {
	l := unix.Flock_t{Type: unix.F_WRLCK}
	if unix.FcntlFlock(f.Fd(), unix.F_GETLK, &l) != nil || l.Type == unix.F_UNLCK {
		return 0
	}
	return int(l.Pid)
}

// Holder returns the id of the user's network process, or 0 when none runs.
func Holder(runtimeDir string) (int, error) {
	f, err := os.OpenFile(filepath.Clean(files{runtimeDir}.lock()), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return holder(f), nil
}
