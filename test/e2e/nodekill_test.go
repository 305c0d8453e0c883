package e2e

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bramble.dev/bramble/test/cluster"
)

// TestNodeKilledUnderChange kills the agent, the network process or Podman's
// service at random moments while pods come and go (6 points;
// BRAMBLE_NODE_KILLS raises it): afterwards every pod that is wanted runs
// exactly once, and of the others nothing is left. Nothing is restarted: what ran
// before a kill is the same container after it.
func TestNodeKilledUnderChange(t *testing.T) {
	t.Parallel()
	s := cluster.StartServer(t)
	n := s.StartNode(t, "mast")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	source := rand.New(rand.NewPCG(seed, 0))
	next := 0
	var wanted []string
	ran := map[string]string{} // by pod: the container that ran at the last point
	for point := range number(t, "BRAMBLE_NODE_KILLS", 6) {
		for range 1 + source.IntN(2) {
			s.Apply(fmt.Sprintf(sleeper, next, "keep"))
			wanted = append(wanted, fmt.Sprintf("sleeper-%d", next))
			next++
		}
		if len(wanted) > 4 {
			s.Must("delete", "pod", wanted[0], "--wait=false")
			wanted = wanted[1:]
		}
		timer := time.NewTimer(time.Duration(source.IntN(2500)) * time.Millisecond)
		<-timer.C
		victim := []string{"bramble-agent", "bramble-network", "podman system", "podman system"}[source.IntN(4)]
		kill(t, n, victim)
		cluster.Eventually(t, time.Minute, func() string { return settled(s, n, wanted) })
		for name, id := range incarnations(s) {
			if before := ran[name]; before != "" && before != id {
				t.Errorf("%s was container %s and is %s", name, before, id)
			}
			ran[name] = id
		}
		if t.Failed() {
			t.Fatalf("point %d, after %s was killed", point, victim)
		}
	}
	s.Must("delete", "pods", "--all", "--wait=false")
	cluster.Eventually(t, time.Minute, func() string { return settled(s, n, nil) })
}

// incarnations lists the pods' containers with their counts of restarts, which are 0.
func incarnations(s *cluster.Server) map[string]string {
	ids := map[string]string{}
	list := s.Must("get", "pods", "-o", `jsonpath={range .items[*]}{.metadata.name} {.status.containerStatuses[0].containerID}/{.status.containerStatuses[0].restartCount}{"\n"}{end}`)
	for line := range strings.Lines(list) {
		name, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		ids[name] = id
	}
	return ids
}

// kill kills one program of the node, and starts the agent again if it was that.
func kill(t *testing.T, n *cluster.Node, program string) {
	t.Helper()
	if program == "bramble-agent" {
		n.Process.Kill()
		n.Start()
		return
	}
	pids, err := n.Running(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL) // gone already is as good
	}
}

// settled says what is not yet as it should be: the API's pods, the engine's
// containers, or the pinned namespaces.
func settled(s *cluster.Server, n *cluster.Node, wanted []string) string {
	pods := s.Must("get", "pods", "--no-headers")
	if strings.Count(pods, "1/1") != len(wanted) || strings.Count(pods, "\n") != len(wanted) {
		return fmt.Sprintf("want %d pods ready:\n%s", len(wanted), pods)
	}
	running, err := n.Podman(s.Context(), "ps", "--all", "--format", "{{.Names}} {{.Status}}")
	if err != nil {
		return err.Error()
	}
	for _, name := range wanted {
		if strings.Count(running, "_"+name+"_") != 1 {
			return fmt.Sprintf("want exactly one container of %s:\n%s", name, running)
		}
	}
	if count := strings.Count(running, " Up "); count != 2*len(wanted) || strings.Count(running, "\n") != count {
		return fmt.Sprintf("want %d containers and as many infra containers, all up:\n%s", len(wanted), running)
	}
	pinned, err := filepath.Glob(filepath.Join(n.RuntimeDir, "bramble/netns/*-*"))
	if err != nil || len(pinned) != len(wanted) {
		return fmt.Sprintf("want %d pinned namespaces: %v, %v", len(wanted), pinned, err)
	}
	return ""
}
