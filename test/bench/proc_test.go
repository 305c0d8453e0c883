package bench

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// usage is what a process has used, from /proc/PID/{status,io,stat} (proc(5)).
type usage struct {
	rssMiB    float64 // resident set
	anonMiB   float64 // of it anonymous
	peakMiB   float64 // the most that was resident, since resetPeak
	writtenKB float64 // caused to be written to storage, 10^3 bytes
	cpu       time.Duration
	children  time.Duration // processor of children that have ended
}

func read(t *testing.T, pid int) usage {
	t.Helper()
	dir := "/proc/" + strconv.Itoa(pid)
	fields := func(name string) map[string]float64 {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]float64{}
		for line := range strings.Lines(string(data)) {
			if f := strings.Fields(line); len(f) >= 2 {
				values[strings.TrimSuffix(f[0], ":")], _ = strconv.ParseFloat(f[1], 64)
			}
		}
		return values
	}
	status, io := fields("status"), fields("io")
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		t.Fatal(err)
	}
	after := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, _ := strconv.ParseFloat(after[11], 64)
	system, _ := strconv.ParseFloat(after[12], 64)
	childUser, _ := strconv.ParseFloat(after[13], 64)
	childSystem, _ := strconv.ParseFloat(after[14], 64)
	return usage{
		children: time.Duration((childUser + childSystem) * float64(time.Second) / 100),
		rssMiB:   status["VmRSS"] / 1024, anonMiB: status["RssAnon"] / 1024, peakMiB: status["VmHWM"] / 1024,
		writtenKB: io["write_bytes"] / 1e3,
		cpu:       time.Duration((user + system) * float64(time.Second) / 100), // USER_HZ
	}
}

// resetPeak begins usage.peakMiB anew (clear_refs in proc(5)).
func resetPeak(t *testing.T, pid int) {
	t.Helper()
	if err := os.WriteFile("/proc/"+strconv.Itoa(pid)+"/clear_refs", []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
}
