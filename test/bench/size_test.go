package bench

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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

// forget takes a program out of the file cache, from where a start then reads it
// anew, as after boot: of what a linker has just written the kernel keeps larger
// pieces, and counts 4 MiB more of it as resident.
func forget(t *testing.T, program string) {
	t.Helper()
	f, err := os.Open(filepath.Join(cluster.Programs(t), program))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)); err != nil {
		t.Fatalf("cannot take %s out of the file cache: %v", program, err)
	}
}

// TestServerStart measures an empty server: start to ready, and its memory.
func TestServerStart(t *testing.T) {
	forget(t, "bramble-server")
	s := cluster.StartServer(t)
	figure(t, "server, resident at start", read(t, s.PID()).rssMiB, 30, "MiB")
	var starts []time.Duration
	for range 11 {
		s.Stop()
		starts = append(starts, s.Start())
	}
	figure(t, "server, start to ready (median of 11)", milliseconds(median(starts)), 300, "ms")
}
