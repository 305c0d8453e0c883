package cluster_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// TestUserInheritsNothing: the number of a user that was removed by hand, after
// a run that was cut off, is the next user's, and the runtime directory goes by it.
func TestUserInheritsNothing(t *testing.T) {
	former := -1
	for {
		u, err := cluster.NewUser(t.Context(), "br")
		if err != nil {
			t.Fatal(err)
		}
		left := filepath.Join(u.RuntimeDir, "bramble/netns/left")
		if u.UID == former { // it is the highest there is, so that it comes again
			if _, err := os.Stat(left); !os.IsNotExist(err) {
				t.Errorf("%s is there (%v)", left, err)
			}
			if err := u.Close(); err != nil {
				t.Fatal(err)
			}
			return
		}
		if err := os.MkdirAll(left, 0o700); err != nil {
			t.Fatal(err)
		}
		former = u.UID
		cluster.Eventually(t, 30*time.Second, func() string { // another run may hold the password file's lock
			if out, err := exec.Command("userdel", u.Name).CombinedOutput(); err != nil {
				return fmt.Sprintf("%v: %s", err, out)
			}
			return ""
		})
		if err := os.RemoveAll(u.Home); err != nil {
			t.Fatal(err)
		}
	}
}
