package bench

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"bramble.dev/bramble/test/cluster"
)

// TestBinaries holds the stripped programs to their budgets.
func TestBinaries(t *testing.T) {
	for name, budget := range map[string]float64{
		"bramble-server": 32, "bramble-agent": 20, "bramble-network": 16, "edgectl": 80, "pause": 1,
	} {
		info, err := os.Stat(filepath.Join(cluster.Programs(t), name))
		if err != nil {
			t.Fatal(err)
		}
		figure(t, name+", stripped", float64(info.Size())/1e6, budget, "MB")
	}
}

// TestServerStart measures an empty server: start to ready, and its memory.
func TestServerStart(t *testing.T) {
	s := cluster.StartServer(t)
	figure(t, "server, resident at start", read(t, s.PID()).rssMiB, 30, "MiB")
	var starts []time.Duration
	for range 11 {
		s.Stop()
		starts = append(starts, s.Start())
	}
	figure(t, "server, start to ready (median of 11)", milliseconds(median(starts)), 300, "ms")
}
