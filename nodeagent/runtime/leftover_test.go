package runtime_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"bramble.dev/bramble/nodeagent/container"
)

// TestPodmanStartsWhereAllWasKilled: a kill of all of a user's processes is a
// power cut that leaves the runtime directory as it was, half-written files
// included.
func TestPodmanStartsWhereAllWasKilled(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(pauseFile string) error{
		"as it was": func(string) error { return nil },
		"empty":     func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"garbled":   func(path string) error { return os.WriteFile(path, []byte("garbage"), 0o600) },
		"gone":      os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			n := emptyNode(t)
			_, stop := n.startService(t)
			id := n.run(t, shell(n.makePod(t, "u1"), "sleep 1000"))
			stop()
			if err := n.KillAll(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := damage(filepath.Join(n.RuntimeDir, "libpod/tmp/pause.pid")); err != nil {
				t.Fatal(err)
			}
			up, stop := n.serve(t, nil)
			defer stop()
			for err := range up { // the killed service's socket may still be closing
				if err == nil {
					break
				}
			}
			n.makePod(t, "u1")
			if err := n.StartContainer(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if c := n.only(t, "u1"); c.ID != id || c.Phase != container.Running || syscall.Kill(c.PID, 0) != nil {
				t.Errorf("started again: %+v", c)
			}
		})
	}
}
