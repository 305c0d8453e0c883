package bench

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"bramble.dev/bramble/test/cluster"
)

// TestIdleNode starts 20 pods, notes each process's memory, and then lets the
// cluster rest for BRAMBLE_IDLE (default 1 min): what our processes write and
// use of the processor, scaled to an hour.
func TestIdleNode(t *testing.T) {
	const pods = 20
	s := cluster.StartServer(t)
	n := s.StartNode(t, "bench")
	client := s.Client()
	for i := range pods {
		applyPod(t, client, fmt.Sprintf("pod-%d", i))
	}
	rest(t, 5*time.Second)
	named := map[string]int{"bramble-server": s.PID()}
	budgets := map[string]float64{"bramble-agent": 24, "bramble-network": 24, "bramble-server": 48}
	shown := []string{"bramble-server", "bramble-agent", "bramble-network", "podman system service", "pasta", "slirp4netns", "conmon"}
	for _, name := range shown[1:] {
		if pids, err := n.Running(name); err != nil {
			t.Fatal(err)
		} else if len(pids) > 0 {
			named[name] = pids[0]
		}
	}
	for _, name := range shown {
		if pid := named[name]; pid != 0 {
			u := read(t, pid)
			figure(t, fmt.Sprintf("%s, resident with %d pods (%.1f MiB of it anonymous)", name, pods, u.anonMiB), u.rssMiB, budgets[name], "MiB")
		}
	}

	length := time.Minute
	if text := os.Getenv("BRAMBLE_IDLE"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	before := map[string]usage{}
	for name, pid := range named {
		before[name] = read(t, pid)
	}
	rest(t, length)
	for _, name := range shown {
		pid := named[name]
		if pid == 0 || name == "conmon" {
			continue
		}
		now := read(t, pid)
		written := now.writtenKB - before[name].writtenKB
		percent := 100 * float64(now.cpu-before[name].cpu) / float64(length)
		cpuBudget := 0.0
		if slices.Contains([]string{"bramble-server", "bramble-agent"}, name) {
			cpuBudget = 1
			if written > 0 {
				t.Errorf("%s wrote %.1f kB in %v of rest: nothing periodic may touch the disk", name, written, length)
			}
		}
		figure(t, fmt.Sprintf("%s, written in an idle hour (%v scaled)", name, length), written*float64(time.Hour/length), 0, "kB")
		figure(t, fmt.Sprintf("%s, processor while idle", name), percent, cpuBudget, "%")
	}
}

func rest(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-t.Context().Done():
	case <-timer.C:
	}
}
