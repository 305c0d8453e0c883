// Package e2e tests Bramble from outside: real servers and agents as
// processes, real rootless Podman, stock kubectl and client-go. It needs root
// (to make users) and the programs of `make build`.
package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"bramble.dev/bramble/test/cluster"
)

// TestKubectl runs the scripts of testdata/kubectl with every kubectl on this
// machine, and with edgectl, each in a namespace of its own.
func TestKubectl(t *testing.T) {
	t.Parallel()
	s := cluster.StartServer(t)
	s.StartNode(t, "shelf")
	for version, program := range kubectls(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			prefix := regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(version, "-")
			bin := t.TempDir()
			if err := os.Symlink(program, filepath.Join(bin, "kubectl")); err != nil {
				t.Fatal(err)
			}
			testscript.Run(t, testscript.Params{
				Files: scripts(t, version),
				Setup: func(env *testscript.Env) error {
					namespace := prefix + "-" + filepath.Base(env.WorkDir)
					s.Must("create", "namespace", namespace)
					env.Setenv("PATH", bin+":/usr/bin:/bin")
					env.Setenv("KUBECONFIG", s.Kubeconfig)
					env.Setenv("HOME", env.WorkDir)
					env.Setenv("NS", namespace)
					return nil
				},
			})
		})
	}
}

// some names the scripts that not every version runs. Streams are for those that
// changed how they stream: the oldest, with SPDY alone, the first that run commands,
// and that forward ports, by WebSocket, and edgectl, which is made of the newest. What
// all do alike, the oldest and edgectl try.
var some = map[string]*regexp.Regexp{
	"alike.txtar":     regexp.MustCompile(`^(edgectl|v1\.27\.)`),
	"placement.txtar": regexp.MustCompile(`^(edgectl|v1\.27\.)`),
	"streams.txtar":   regexp.MustCompile(`^(edgectl|v1\.(27|30|31)\.)`),
}

// scripts are those that one version of kubectl runs.
func scripts(t *testing.T, version string) []string {
	t.Helper()
	all, err := filepath.Glob("testdata/kubectl/*.txtar")
	if err != nil || len(all) <= len(some) {
		t.Fatalf("the scripts are %v, %v", all, err)
	}
	return slices.DeleteFunc(all, func(path string) bool {
		versions := some[filepath.Base(path)]
		return versions != nil && !versions.MatchString(version)
	})
}

// kubectls finds every kubectl on this machine, one a version: on the PATH,
// in /usr/lib/*/bin and /opt/*/bin, and the two that `make build` and the
// tests build. edgectl is one of them. Google's dispatcher is none: it runs one of
// those beside it.
func kubectls(t *testing.T) map[string]string {
	t.Helper()
	bin := cluster.Programs(t)
	patterns := []string{filepath.Join(bin, "kubectl"), "/usr/lib/*/bin/kubectl*", "/opt/*/bin/kubectl*"}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		patterns = append(patterns, filepath.Join(dir, "kubectl*"))
	}
	found := map[string]string{"edgectl": filepath.Join(bin, "edgectl")}
	version := regexp.MustCompile(`Client Version: (?:version.Info.*GitVersion:")?(v\d+\.\d+\.\d+[^\s"]*)`)
	for _, pattern := range patterns {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			cmd := exec.CommandContext(t.Context(), path, "version", "--client")
			cmd.Env = append(os.Environ(), "KUBECONFIG=/nonexistent")
			out, err := cmd.Output()
			if m := version.FindSubmatch(out); err == nil && m != nil && found[string(m[1])] == "" && !bytes.Contains(m[1], []byte("dispatcher")) {
				found[string(m[1])] = path
			}
		}
	}
	if len(found) < 2 {
		t.Fatal("no stock kubectl found; `make test` builds one into bin/")
	}
	t.Logf("kubectls: %v", found)
	return found
}
