package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const storageConf = "[storage]\ndriver = \"overlay\"\n"

// containersConf names the OCI runtime and cgroup handling that work here:
// crun and systemd on a machine with cgroup v2, runc without delegation else.
func containersConf() string {
	runtime := "crun"
	if !unifiedCgroups() {
		runtime = "runc" // crun refuses the hybrid layout
	}
	return fmt.Sprintf("[engine]\nruntime = %q\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n", runtime)
}

func unifiedCgroups() bool {
	var fs unix.Statfs_t
	return unix.Statfs("/sys/fs/cgroup", &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC
}

// openDevices lets users open what udev opens for them on an ordinary machine.
func openDevices() error {
	for _, path := range []string{"/dev/net/tun", "/dev/fuse"} {
		if err := os.Chmod(path, 0o666); err != nil {
			return fmt.Errorf("cannot open %s to users: %w", path, err)
		}
	}
	return nil
}

// PodmanSocket is where StartPodman makes the user's Podman service listen.
func (u *User) PodmanSocket() string {
	return filepath.Join(u.RuntimeDir, "podman", "podman.sock")
}

// StartPodman starts the user's Podman API service and returns its pid when it
// answers. It ends with t.
func (u *User) StartPodman(t testing.TB) (pid int) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(u.PodmanSocket()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Dir(u.PodmanSocket()), u.UID, u.GID); err != nil {
		t.Fatal(err)
	}
	cmd := u.Command(context.WithoutCancel(t.Context()), "podman", "system", "service", "--time=0", "unix://"+u.PodmanSocket())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if err := waitSocket(t.Context(), u.PodmanSocket(), 20*time.Second); err != nil {
		t.Fatalf("podman's service does not answer: %v", err)
	}
	return cmd.Process.Pid
}

// waitSocket waits until something accepts connections on a unix socket.
func waitSocket(ctx context.Context, path string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		conn, err := net.Dial("unix", path)
		if err == nil {
			return conn.Close()
		}
		if wait(ctx, 20*time.Millisecond) != nil {
			return err
		}
	}
}
