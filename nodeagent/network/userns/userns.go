// Package userns finds and enters the user and mount namespaces of a user's
// rootless Podman. Podman's pause process holds them; network namespaces that
// containers are to join must be made inside.
package userns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"bramble.dev/bramble/nodeagent/network/process"
)

// ErrNoPause is returned when Podman's pause process is not running.
var ErrNoPause = errors.New("podman's pause process is not running")

// PausePID returns the id of the pause process that Podman recorded, or ErrNoPause.
func PausePID(runtimeDir string) (int, error) {
	data, err := os.ReadFile(filepath.Join(runtimeDir, "libpod/tmp/pause.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return 0, ErrNoPause
	}
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || pid <= 1 || !process.Alive(pid) {
		return 0, ErrNoPause
	}
	return pid, nil
}

// Inside tells whether this process is in the namespaces that process pid holds.
func Inside(pid int) (bool, error) {
	for _, ns := range []string{"user", "mnt"} {
		own, err := os.Readlink("/proc/self/ns/" + ns)
		if err != nil {
			return false, err
		}
		its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, ns))
		if errors.Is(err, os.ErrNotExist) {
			return false, ErrNoPause
		}
		if errors.Is(err, os.ErrPermission) {
			return false, nil // it is in another user namespace beside ours
		}
		if err != nil {
			return false, fmt.Errorf("cannot look into podman's pause process %d: %w", pid, err)
		}
		if own != its {
			return false, nil
		}
	}
	return true, nil
}

// MakePause makes Podman start its pause process, which rejoins the namespaces
// of running containers where there are some, and returns its id.
func MakePause(ctx context.Context, runtimeDir string) (int, error) {
	out, err := exec.CommandContext(ctx, "podman", "unshare", "true").CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("cannot start podman's pause process with `podman unshare true`: %w: %s", err, strings.TrimSpace(string(out)))
	}
	pid, err := PausePID(runtimeDir)
	if err != nil {
		return 0, fmt.Errorf("%w after `podman unshare true`: is XDG_RUNTIME_DIR=%s what podman uses?", err, runtimeDir)
	}
	return pid, nil
}

// Exec replaces this process by argv inside the namespaces that process pid
// holds, with the same process id and the host's network namespace. It returns
// only when that fails.
func Exec(pid int, argv []string, env []string) error {
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return fmt.Errorf("cannot find nsenter (apt install util-linux): %w", err)
	}
	args := append([]string{"nsenter", "--target", strconv.Itoa(pid), "--user", "--mount", "--preserve-credentials", "--"}, argv...)
	return fmt.Errorf("cannot run nsenter: %w", syscall.Exec(nsenter, args, env))
}
