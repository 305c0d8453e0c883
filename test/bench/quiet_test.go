package bench

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"bramble.dev/bramble/test/cluster"
)

// TestQuietNode lets a node with 10 quiet pods rest that are probed every 10 s,
// half of them by HTTP and half by commands, for BRAMBLE_QUIET (default 3 min): what
// all processes of the node's user write, Podman, conmon and the OCI runtime among
// them, scaled to a day. The runtime directory is in memory, as on an ordinary
// machine.
func TestQuietNode(t *testing.T) {
	const pods = 10
	length := duration(t, "BRAMBLE_QUIET", 3*time.Minute)
	s := cluster.StartServer(t)
	u := cluster.ForTest(t)
	if err := u.RuntimeInMemory(); err != nil {
		t.Fatal(err)
	}
	n := s.StartNodeAs(t, "bench", u)
	for i := range pods {
		probe := "httpGet: {port: 8080, path: /passwd}"
		if i%2 == 1 {
			probe = "exec: {command: [cat, /etc/passwd]}"
		}
		s.Apply(fmt.Sprintf(probedPod, i, probe))
	}
	s.WaitFor("condition=Ready", "pods", "--all")
	rest(t, 30*time.Second)
	before := written(t, n)
	rest(t, length)
	now := written(t, n)
	daily := float64(24*time.Hour) / float64(length) / 1e6
	sum := 0.0
	for _, name := range sorted(now) {
		wrote := now[name] - before[name]
		sum += wrote
		if wrote > 0 {
			figure(t, fmt.Sprintf("node with %d probed pods, written a day by %s", pods, name), wrote*daily, 0, "MB")
		}
	}
	figure(t, fmt.Sprintf("node with %d probed pods, written a day by all its processes (%v scaled)", pods, length), sum*daily, 20, "MB")
}

// written is what the user's processes have caused to be written to storage, in
// bytes by the programs' names. The sum of a process has that of the children
// that it has waited for (proc(5), io).
func written(t *testing.T, n *cluster.Node) map[string]float64 {
	t.Helper()
	pids, err := n.Processes()
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{}
	for _, pid := range pids {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		io, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
		if err != nil {
			continue // it has ended
		}
		for line := range strings.Lines(string(io)) {
			if text, found := strings.CutPrefix(line, "write_bytes: "); found {
				bytes, _ := strconv.ParseFloat(strings.TrimSpace(text), 64)
				sums[strings.TrimSpace(string(name))] += bytes
			}
		}
	}
	return sums
}

func sorted(sums map[string]float64) []string {
	var names []string
	for name := range sums {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
