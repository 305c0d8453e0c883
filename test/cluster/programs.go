package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Programs returns the folder of the built programs, readable by every user:
// bin/ of the checkout, or a copy of it that goes with t where the checkout
// lies in a closed home.
func Programs(t testing.TB) string {
	t.Helper()
	bin := filepath.Join(Checkout(t), "bin")
	if _, err := os.Stat(filepath.Join(bin, "bramble-server")); err != nil {
		t.Fatalf("the programs are not built: run `make build` (%v)", err)
	}
	if openToAll(bin) {
		return bin
	}
	dir, err := os.MkdirTemp("/var/tmp", "bramble-bin-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "cp", "-r", bin, dir).CombinedOutput(); err != nil {
		t.Fatalf("cannot copy the programs: %v: %s", err, out)
	}
	return filepath.Join(dir, "bin")
}

// Checkout returns the root of the checkout that the test runs in.
func Checkout(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if isRoot(dir) {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod with a Makefile above the test's folder")
		}
		dir = parent
	}
}

// isRoot reports whether dir is the checkout's root, and not a module within it.
func isRoot(dir string) bool {
	for _, name := range []string{"go.mod", "Makefile"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// openToAll reports whether every user may enter dir.
func openToAll(dir string) bool {
	for ; dir != "/"; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o005 != 0o005 {
			return false
		}
	}
	return true
}
