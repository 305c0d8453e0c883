package network_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// programs holds bramble-network and, in cni, its plugins; any user may run them.
var programs string

func TestMain(m *testing.M) {
	code, err := build(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot build the programs under test:", err)
	}
	os.Exit(code)
}

func build(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "bramble-network-test-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	const plugins = "github.com/containernetworking/plugins/plugins/"
	for out, args := range map[string][]string{
		dir + "/":                  {"bramble.dev/bramble/cmd/bramble-network"},
		filepath.Join(dir, "cni/"): {"-modfile=../../packaging/tools.mod", plugins + "main/bridge", plugins + "ipam/static"},
	} {
		if err := os.MkdirAll(out, 0o755); err != nil {
			return 1, err
		}
		cmd := exec.Command("go", append([]string{"build", "-o", out}, args...)...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return 1, err
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return 1, err
	}
	programs = dir
	return m.Run(), nil
}
