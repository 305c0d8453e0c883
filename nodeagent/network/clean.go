package network

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"bramble.dev/bramble/nodeagent/network/netapi"
	"bramble.dev/bramble/nodeagent/network/netns"
	"bramble.dev/bramble/nodeagent/network/process"
	"bramble.dev/bramble/nodeagent/network/wayout"
)

const stopLimit = 5 * time.Second

// Clean ends the user's network process and way out and removes every
// namespace and file that they made; nothing being there is a success. Inside
// Podman's namespaces it unpins the namespaces; where those are gone the pins
// are too, and it may run outside. Podman's own pause process is left alone.
func Clean(ctx context.Context, runtimeDir string) error {
	f := files{runtimeDir}
	if err := stopServer(ctx, runtimeDir); err != nil {
		return err
	}
	if err := wayout.StopAll(ctx, f.wayOutNetns()); err != nil {
		return err
	}
	entries, err := os.ReadDir(f.netns())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if e.Name() == netapi.NodeName || netapi.ValidUID(e.Name()) {
			err = errors.Join(err, netns.Remove(filepath.Join(f.netns(), e.Name())))
		}
	}
	err = errors.Join(ignoreAbsent(err), netns.Remove(f.wayOutNetns()), os.RemoveAll(f.cni()))
	for _, path := range []string{f.socket(), f.socket() + ".new", f.record(), f.record() + ".new", f.wayOutLog(), f.log(), f.lock(), f.netns()} {
		err = errors.Join(err, ignoreAbsent(os.Remove(path)))
	}
	_ = os.Remove(f.dir()) // the agent may have files of its own there
	return err
}

// stopServer ends the network process, by force if it does not listen.
func stopServer(ctx context.Context, runtimeDir string) error {
	pid, err := Holder(runtimeDir)
	if err != nil || pid == 0 {
		return err
	}
	gentle, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	if err := process.Kill(gentle, pid, unix.SIGTERM); err == nil {
		return nil
	}
	return process.Kill(ctx, pid, unix.SIGKILL)
}

func ignoreAbsent(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
