// Package netns makes, enters and removes network namespaces that are pinned as
// files, so that they live without a process. It is meant for a process that is
// root in a user namespace and may enter such a namespace but not return from
// it to the host's: every visit costs a thread, which is thrown away.
package netns

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Pinned tells whether path is a pinned namespace. A plain file is not: such
// stay behind when the mount namespace that held the pin is gone.
func Pinned(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Type == unix.NSFS_MAGIC
}

// Create makes a namespace with its loopback up and pins it at path, replacing
// a plain file. One that is pinned there already is left as it is.
func Create(path string) error {
	if Pinned(path) {
		return nil
	}
	if err := touch(path); err != nil {
		return err
	}
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(lo); err != nil {
			return err
		}
		return unix.Mount("/proc/thread-self/ns/net", path, "", unix.MS_BIND, "")
	})
	if err != nil {
		return fmt.Errorf("cannot make network namespace %s: %w", path, err)
	}
	return nil
}

// Alias pins the namespace at path at a second path as well.
func Alias(path, alias string) error {
	if err := Remove(alias); err != nil {
		return err
	}
	if err := touch(alias); err != nil {
		return err
	}
	if err := unix.Mount(path, alias, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("cannot pin network namespace %s at %s: %w", path, alias, err)
	}
	return nil
}

func touch(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// Remove unpins the namespace at path and removes the file; there being none is
// a success. The namespace ends when no process is in it.
func Remove(path string) error {
	for Pinned(path) {
		if err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("cannot unpin network namespace %s: %w", path, err)
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Do runs fn in the namespace pinned at path and returns its error. What fn
// needs from the namespace (sockets, child processes) it makes itself, not in
// goroutines of its own; sockets may be used outside of it afterwards.
func Do(path string, fn func() error) error {
	if !Pinned(path) {
		return fmt.Errorf("cannot enter network namespace %s: %w", path, os.ErrNotExist)
	}
	ns, err := os.Open(path)
	if err != nil {
		return err
	}
	defer ns.Close()
	return onThread(func() error {
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("cannot enter network namespace %s: %w", path, err)
		}
		return fn()
	})
}

// onThread runs fn on a thread that ends with it.
func onThread(fn func() error) error {
	done := make(chan error, 1)
	var run func()
	run = func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			done <- fn() // still locked: the runtime ends the thread with the goroutine
			return
		}
		// The leader thread cannot end, and /proc/self would show its namespace:
		// keep it busy until another thread has done the work.
		defer runtime.UnlockOSThread()
		inner := make(chan struct{})
		go func() {
			defer close(inner)
			run()
		}()
		<-inner
	}
	go run()
	return <-done
}
