package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"bramble.dev/bramble/test/cluster"
)

// TestIdleLink counts what an idle node with 5 pods sends and receives, in bytes
// on the wire (Ethernet frames, as its own interface counts them), over
// BRAMBLE_LINK (default 3 min), scaled to a day.
func TestIdleLink(t *testing.T) {
	length := duration(t, "BRAMBLE_LINK", 3*time.Minute)
	hosts := cluster.NewHosts(t)
	s := cluster.StartServerOn(t, hosts)
	n := s.StartNodeOn(t, "far", hosts.Add())
	client := s.Client()
	for i := range 5 {
		applyPod(t, client, fmt.Sprintf("pod-%d", i))
	}
	rest(t, 20*time.Second) // events and images are told
	in, out := wire(t, n.PID())
	rest(t, length)
	nowIn, nowOut := wire(t, n.PID())
	daily := float64(24*time.Hour) / float64(length) / 1e6
	figure(t, "idle node with 5 pods, sent a day", (nowOut-out)*daily, 0, "MB")
	figure(t, "idle node with 5 pods, received a day", (nowIn-in)*daily, 0, "MB")
	figure(t, fmt.Sprintf("idle node with 5 pods, on the link a day (%v scaled)", length), (nowIn-in+nowOut-out)*daily, 3, "MB")
}

// wire is what the interface eth0 of a process's host has received and sent.
func wire(t *testing.T, pid int) (in, out float64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/dev", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if counts, found := strings.CutPrefix(strings.TrimSpace(line), "eth0:"); found {
			f := strings.Fields(counts)
			in, _ = strconv.ParseFloat(f[0], 64)
			out, _ = strconv.ParseFloat(f[8], 64)
			return in, out
		}
	}
	t.Fatal("the host has no eth0")
	return 0, 0
}

// duration is a length that the environment may set.
func duration(t *testing.T, variable string, ordinary time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return ordinary
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return d
}
