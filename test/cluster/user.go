package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// User is a Linux user with rootless Podman: subordinate ids, a runtime
// directory, native overlay storage, and the OCI runtime that works on this
// machine's cgroups.
type User struct {
	Name       string
	UID, GID   int
	Home       string   // on disk, 0700
	RuntimeDir string   // XDG_RUNTIME_DIR
	Groups     []uint32 // that its processes are in beside its own
	Netns      string   // the path of the network namespace that all of it runs in; "": this one
}

// NewUser makes a user named after prefix and a random run id. It retries
// while another run holds the password file's lock.
func NewUser(ctx context.Context, prefix string) (*User, error) {
	id := make([]byte, 4)
	if _, err := rand.Read(id); err != nil {
		return nil, err
	}
	u, err := MakeUser(ctx, prefix+"-"+hex.EncodeToString(id))
	if err != nil {
		return nil, err
	}
	// Of one who had the same number, and whose run was cut off, there may be
	// processes and files.
	return u, errors.Join(u.KillAll(ctx), u.removeByNumber(), u.makeRuntimeDir())
}

// removeByNumber removes what is the user's by its number and not by its name.
func (u *User) removeByNumber() error {
	return errors.Join(os.RemoveAll(u.RuntimeDir), u.removeTemporary(),
		os.RemoveAll(fmt.Sprintf("/tmp/podman-run-%d", u.UID)), os.RemoveAll(fmt.Sprintf("/tmp/containers-user-%d", u.UID)),
		os.RemoveAll("/dev/shm/libpod_rootless_lock_"+strconv.Itoa(u.UID)))
}

// removeTemporary removes what Podman has left of pulls that were cut off.
func (u *User) removeTemporary() error {
	entries, err := os.ReadDir("/var/tmp")
	for _, e := range entries {
		info, infoErr := e.Info()
		if infoErr == nil && info.Sys().(*syscall.Stat_t).Uid == uint32(u.UID) {
			err = errors.Join(err, os.RemoveAll(filepath.Join("/var/tmp", e.Name())))
		}
	}
	return err
}

// ForTest makes a user that is gone, with all its processes and files, when t ends.
func ForTest(t testing.TB) *User {
	t.Helper()
	u, err := NewUser(t.Context(), "br")
	if err != nil {
		t.Fatalf("cannot make a test user (root is needed, and `make deps`): %v", err)
	}
	t.Cleanup(func() {
		if err := u.Close(); err != nil {
			t.Errorf("cannot remove the test user: %v", err)
		}
	})
	return u
}

// MakeUser makes the user name, or takes it over when it exists.
func MakeUser(ctx context.Context, name string) (*User, error) {
	home := filepath.Join("/var/lib", name)
	if _, err := user.Lookup(name); err != nil {
		if err := lockedCommand(ctx, "useradd", "--create-home", "--home-dir", home, "--shell", "/bin/sh", name); err != nil {
			return nil, err
		}
	}
	account, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("cannot look up user %s: %w", name, err)
	}
	u := &User{Name: name, Home: home}
	u.UID, _ = strconv.Atoi(account.Uid)
	u.GID, _ = strconv.Atoi(account.Gid)
	u.RuntimeDir = fmt.Sprintf("/run/user/%d", u.UID)
	return u, u.prepare()
}

// prepare writes the user's directories and Podman's configuration.
func (u *User) prepare() error {
	if err := u.makeRuntimeDir(); err != nil {
		return err
	}
	if err := openDevices(); err != nil {
		return err
	}
	config := filepath.Join(u.Home, ".config/containers")
	if err := os.MkdirAll(config, 0o755); err != nil {
		return err
	}
	for name, text := range map[string]string{"storage.conf": storageConf, "containers.conf": containersConf()} {
		if err := os.WriteFile(filepath.Join(config, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return filepath.Walk(filepath.Join(u.Home, ".config"), func(path string, _ os.FileInfo, err error) error {
		return errors.Join(err, os.Lchown(path, u.UID, u.GID))
	})
}

func (u *User) makeRuntimeDir() error {
	if err := os.MkdirAll("/run/user", 0o755); err != nil {
		return err
	}
	if err := os.MkdirAll(u.RuntimeDir, 0o700); err != nil {
		return err
	}
	return os.Chown(u.RuntimeDir, u.UID, u.GID)
}

// RuntimeInMemory moves the runtime directory, which nothing may use yet, to a
// tmpfs, as it is on an ordinary machine wherever this one has it.
func (u *User) RuntimeInMemory() error {
	if err := os.RemoveAll(u.RuntimeDir); err != nil {
		return err
	}
	u.RuntimeDir = filepath.Join("/dev/shm", u.Name)
	return u.makeRuntimeDir()
}

// Command is a command of this user, in a session of its own, with its home
// and runtime directory and nothing else of the caller's environment.
func (u *User) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	attributes := &syscall.SysProcAttr{Setsid: true}
	if u.Netns == "" {
		attributes.Credential = &syscall.Credential{Uid: uint32(u.UID), Gid: uint32(u.GID), Groups: u.Groups}
	} else { // it takes root to get there
		enter := []string{"--net=" + u.Netns, "--setuid", strconv.Itoa(u.UID), "--setgid", strconv.Itoa(u.GID), "--", name}
		cmd = exec.CommandContext(ctx, "nsenter", append(enter, args...)...)
	}
	cmd.SysProcAttr = attributes
	cmd.Dir = u.Home
	cmd.Env = []string{
		"HOME=" + u.Home, "USER=" + u.Name, "XDG_RUNTIME_DIR=" + u.RuntimeDir,
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8",
	}
	return cmd
}

// Podman runs podman as this user and returns its standard output.
func (u *User) Podman(ctx context.Context, args ...string) (string, error) {
	return run(u.Command(ctx, "podman", args...))
}

// Processes returns the ids of all processes of this user and of its
// subordinate ids.
func (u *User) Processes() ([]int, error) {
	low, count, err := u.subordinate()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		uid, alive := ownerOf(pid)
		if alive && (uid == u.UID || uid >= low && uid < low+count) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// KillAll kills every process of this user, as a power cut would, and returns
// when none is left.
func (u *User) KillAll(ctx context.Context) error {
	for {
		pids, err := u.Processes()
		if err != nil || len(pids) == 0 {
			return err
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // gone already is as good
		}
		if err := wait(ctx, 10*time.Millisecond); err != nil {
			return fmt.Errorf("cannot kill processes %v of %s: %w", pids, u.Name, err)
		}
	}
}

// WipeRuntime empties the runtime directory, as a reboot does.
func (u *User) WipeRuntime() error {
	if err := os.RemoveAll(u.RuntimeDir); err != nil {
		return err
	}
	return u.makeRuntimeDir()
}

// Close kills the user's processes and removes its files and the user.
func (u *User) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := u.KillAll(ctx); err != nil {
		return err
	}
	err := errors.Join(u.removeByNumber(), os.RemoveAll(u.Home))
	// By force: the dead may wait for init to reap them, which userdel takes for life.
	return errors.Join(err, lockedCommand(ctx, "userdel", "--force", u.Name))
}

// subordinate returns the user's range in /etc/subuid.
func (u *User) subordinate() (low, count int, err error) {
	data, err := os.ReadFile("/etc/subuid")
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(data)) {
		var ok bool
		f := strings.Split(strings.TrimSpace(line), ":")
		if ok = len(f) == 3 && f[0] == u.Name; !ok {
			continue
		}
		low, _ = strconv.Atoi(f[1])
		count, _ = strconv.Atoi(f[2])
		return low, count, nil
	}
	return 0, 0, fmt.Errorf("user %s has no range in /etc/subuid: add one with `usermod --add-subuids`", u.Name)
}

// ownerOf returns the real user id of a process that is not a zombie.
func ownerOf(pid int) (uid int, alive bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(data) {
		f := strings.Fields(string(line))
		if len(f) < 2 {
			continue
		}
		if f[0] == "State:" && f[1] == "Z" {
			return 0, false
		}
		if f[0] == "Uid:" {
			uid, err := strconv.Atoi(f[1])
			return uid, err == nil
		}
	}
	return 0, false
}

// lockedCommand runs a command that takes the password files' lock, again
// while another process holds it.
func lockedCommand(ctx context.Context, name string, args ...string) error {
	for {
		_, err := run(exec.CommandContext(ctx, name, args...))
		if err == nil || !strings.Contains(err.Error(), "lock") {
			return err
		}
		if wait(ctx, 100*time.Millisecond) != nil {
			return err
		}
	}
}

// run runs cmd and returns its standard output; the error carries standard error.
func run(cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("cannot run %s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
