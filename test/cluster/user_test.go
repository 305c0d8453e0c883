package cluster_test

import (
	"os"
	"strings"
	"testing"

	"bramble.dev/bramble/test/cluster"
)

func TestUserRunsPodmanAndLeavesNothing(t *testing.T) {
	u, err := cluster.NewUser(t.Context(), "br")
	if err != nil {
		t.Fatal(err)
	}
	if err := u.LoadImage(t.Context()); err != nil {
		t.Error(err)
	}
	out, err := u.Podman(t.Context(), "run", "--rm", "--network=none", cluster.TestImage, "echo", "hello")
	if err != nil || strings.TrimSpace(out) != "hello" {
		t.Errorf("podman run: %q, %v", out, err)
	}
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	if pids, _ := u.Processes(); len(pids) != 0 {
		t.Errorf("processes left: %v", pids)
	}
	for _, dir := range []string{u.Home, u.RuntimeDir} {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s is left (%v)", dir, err)
		}
	}
}
