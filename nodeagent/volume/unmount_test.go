package volume_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"bramble.dev/bramble/nodeagent/volume"
	"bramble.dev/bramble/test/cluster"
)

// asUser names the pod whose volumes this process, started by
// TestUnmountRemovesOtherUsersFiles as the node's user, is to remove.
const asUser = "BRAMBLE_TEST_UNMOUNT"

func TestMain(m *testing.M) {
	uid := os.Getenv(asUser)
	if uid == "" {
		m.Run()
		return
	}
	home := os.Getenv("HOME")
	v := volume.New(volume.Config{Dir: filepath.Join(home, "volumes"), RuntimeDir: filepath.Join(home, "run"), Log: slog.Default()})
	if err := v.Unmount(context.Background(), uid); err != nil {
		panic(err)
	}
}

// TestUnmountRemovesOtherUsersFiles has a container's user 1000, on the node a
// subordinate id of the agent's user, leave a directory that only it may open.
func TestUnmountRemovesOtherUsersFiles(t *testing.T) {
	u := cluster.ForTest(t)
	if err := u.LoadImage(t.Context()); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(u.Home, "volumes", "u1", "v")
	if out, err := u.Command(t.Context(), "mkdir", "-p", "-m", "0777", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, err := u.Podman(t.Context(), "run", "--rm", "--network=none", "--user=1000", "-v", dir+":/v", cluster.TestImage,
		"sh", "-c", "umask 077; mkdir -p /v/a/b; echo x >/v/a/b/c; chmod 0500 /v/a/b")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := u.Command(t.Context(), "rm", "-rf", dir).CombinedOutput(); err == nil {
		t.Fatalf("the user alone could remove it, so this test shows nothing: %s", out)
	}
	program := filepath.Join(u.Home, "unmount")
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, data, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := u.Command(t.Context(), program)
	cmd.Env = append(cmd.Env, asUser+"=u1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Dir(dir)); !os.IsNotExist(err) {
		t.Errorf("left after unmount: %v", err)
	}
}
