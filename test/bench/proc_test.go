package bench

import (
	"fmt"
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
	writtenKB float64 // caused to be written to storage, 10^3 bytes
	cpu       time.Duration
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
	return usage{
		rssMiB: status["VmRSS"] / 1024, anonMiB: status["RssAnon"] / 1024,
		writtenKB: io["write_bytes"] / 1e3,
		cpu:       time.Duration((user + system) * float64(time.Second) / 100), // USER_HZ
	}
}

// processes finds the processes of the node's user by the name of their program
// and, where one program has several, a word of the command line.
func processes(t *testing.T, pids []int) map[string]int {
	t.Helper()
	found := map[string]int{}
	for _, pid := range pids {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || len(data) == 0 {
			continue
		}
		args := strings.Split(string(data), "\x00")
		name := filepath.Base(args[0])
		if name == "podman" && len(args) > 2 {
			name = "podman " + args[1] + " " + args[2]
		}
		found[name] = pid
	}
	return found
}
