package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Lock takes a data directory as Open does, and returns what gives it back.
func Lock(dir string) (unlock func(), err error) {
	f, err := lockDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot use %s: %w", dir, err)
	}
	return func() { f.Close() }, nil
}

// lockDir takes dir for this process until the returned file is closed. The
// kernel gives it back when the process ends in any way.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		holder, _ := os.ReadFile(f.Name())
		err = fmt.Errorf("%w (pid %s): stop it, or give this server a data directory of its own",
			ErrInUse, strings.TrimSpace(string(holder)))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
