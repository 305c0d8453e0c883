package e2e

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bramble.dev/bramble/test/cluster"
)

// TestNodeFaults breaks on a node what a card or a person may break: an infra
// container is killed, a container has lost its files when the machine starts
// (where all are made anew), and an image has lost a layer.
func TestNodeFaults(t *testing.T) {
	t.Parallel()
	s := cluster.StartServer(t)
	n := s.StartNode(t, "mast")
	for i := range 3 {
		s.Apply(fmt.Sprintf(sleeper, i, "keep"))
	}
	s.WaitFor("condition=Ready", "pods", "--all")
	began := time.Now()
	before := incarnations(s)
	if _, err := n.Podman(t.Context(), "kill", infraOf(t, n, s, "sleeper-0")); err != nil {
		t.Fatal(err)
	}
	restarted(t, s, before, "sleeper-0")
	t.Logf("infra container mended after %v", time.Since(began))
	if events := s.Must("get", "events"); !strings.Contains(events, "SandboxChanged") {
		t.Errorf("no event SandboxChanged:\n%s", events)
	}

	before = incarnations(s)
	n.Process.Kill()
	if err := n.KillAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := n.WipeRuntime(); err != nil {
		t.Fatal(err)
	}
	id := strings.Split(before["sleeper-1"], "/")[2] // podman://ID/0
	layer, err := n.Podman(t.Context(), "inspect", "--format", "{{.GraphDriver.Data.UpperDir}}", id)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Dir(strings.TrimSpace(layer))); err != nil {
		t.Fatal(err)
	}
	n.Start()
	restarted(t, s, before, "sleeper-0", "sleeper-1", "sleeper-2")

	t.Logf("containers mended after %v", time.Since(began))
	s.Must("delete", "pods", "--all") // the image's removal gives each ten seconds
	image, err := n.Podman(t.Context(), "image", "inspect", "--format", "{{.GraphDriver.Data.UpperDir}}", cluster.TestImage)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(strings.TrimSpace(image)); err != nil {
		t.Fatal(err)
	}
	s.Apply(fmt.Sprintf(sleeper, 3, "keep"))
	cluster.Eventually(t, 30*time.Second, func() string {
		if events := s.Must("get", "events"); !strings.Contains(events, "podman image rm --force "+cluster.TestImage) {
			return events
		}
		return ""
	})
	cluster.Eventually(t, 30*time.Second, func() string { // refused at times, beside the agent's own calls
		if _, err := n.Podman(t.Context(), "image", "rm", "--force", cluster.TestImage); err != nil {
			t.Log(err)
			return err.Error()
		}
		return ""
	})
	if err := n.LoadImage(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.WaitFor("condition=Ready", "pods", "--all")
}

// infraOf returns the name of a pod's infra container.
func infraOf(t *testing.T, n *cluster.Node, s *cluster.Server, name string) string {
	t.Helper()
	uid := s.Must("get", "pod", name, "-o", "jsonpath={.metadata.uid}")
	out, err := n.Podman(t.Context(), "ps", "--all", "--format", "{{.Names}}", "--filter", "label=edge.bramble.dev/pod-uid="+uid)
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "k8s_POD_") {
			return strings.TrimSpace(line)
		}
	}
	t.Fatalf("no infra container of %s: %v\n%s", name, err, out)
	return ""
}

// restarted waits until these pods' containers are other ones, once, and all the
// others are those that they were.
func restarted(t *testing.T, s *cluster.Server, before map[string]string, names ...string) {
	t.Helper()
	cluster.Eventually(t, time.Minute, func() string {
		if pods := s.Must("get", "pods", "--no-headers"); strings.Count(pods, "1/1") != len(before) {
			return pods
		}
		now := incarnations(s)
		for other, was := range before {
			if (now[other] != was) != slices.Contains(names, other) {
				return fmt.Sprintf("%s was %s and is %s", other, was, now[other])
			}
		}
		return ""
	})
	now := incarnations(s)
	for _, name := range names {
		if was, is := path.Base(before[name]), path.Base(now[name]); is != fmt.Sprint(was[0]-'0'+1) {
			t.Errorf("%s has been restarted otherwise than once: %s times, before %s", name, is, was)
		}
	}
}
