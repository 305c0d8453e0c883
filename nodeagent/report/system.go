package report

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/hw"
)

// System reads what the node is from the kernel. Root is "/" but in tests; Data
// is on the file system that holds images and volumes.
type System struct {
	Root, Data string
	MaxPods    int // a setting; 0: DefaultMaxPods
}

// Facts is what the node is, as one look found it. A zero number is unknown.
type Facts struct {
	CPUs                                int
	MaxPods                             int   // a setting; 0: DefaultMaxPods
	MemoryBytes, MemoryAvailableBytes   int64 // MemTotal and MemAvailable of /proc/meminfo
	StorageBytes, StorageAvailableBytes int64 // for other users than root
	Inodes, InodesFree                  int64 // of the same; zero where the file system makes them as it needs them
	Processes, ProcessesMax             int64
	Info                                corev1.NodeSystemInfo
	Unenforced                          []string // resources whose limits the kernel cannot hold here
}

// Read looks at the node. What cannot be read stays zero.
func (s System) Read() Facts {
	f := Facts{CPUs: runtime.NumCPU(), MaxPods: s.MaxPods}
	memory := s.numbers("proc/meminfo")
	f.MemoryBytes, f.MemoryAvailableBytes = memory["MemTotal"]*1024, memory["MemAvailable"]*1024
	var disk unix.Statfs_t
	if unix.Statfs(s.Data, &disk) == nil {
		f.StorageBytes = int64(disk.Blocks) * int64(disk.Bsize)
		f.StorageAvailableBytes = int64(disk.Bavail) * int64(disk.Bsize)
		f.Inodes, f.InodesFree = int64(disk.Files), int64(disk.Ffree)
	}
	f.ProcessesMax, _ = strconv.ParseInt(s.line("proc/sys/kernel/pid_max"), 10, 64)
	if fields := strings.Fields(s.line("proc/loadavg")); len(fields) > 3 { // "0.1 0.2 0.3 running/all last"
		_, all, _ := strings.Cut(fields[3], "/")
		f.Processes, _ = strconv.ParseInt(all, 10, 64)
	}
	f.Info = corev1.NodeSystemInfo{
		MachineID: s.line("etc/machine-id"), SystemUUID: s.line("etc/machine-id"),
		BootID:        s.line("proc/sys/kernel/random/boot_id"),
		KernelVersion: s.line("proc/sys/kernel/osrelease"),
		OSImage:       s.osImage(), OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
	}
	f.Unenforced = s.unenforced()
	return f
}

// unenforced returns the resources whose limits cannot be held: those without a
// cgroup v2 controller delegated to the user's part of the hierarchy.
func (s System) unenforced() []string {
	available := map[string]bool{}
	for _, controller := range strings.Fields(s.line(filepath.Join("sys/fs/cgroup", s.cgroup(), "cgroup.controllers"))) {
		available[controller] = true
	}
	var missing []string
	for _, controller := range []string{"cpu", "memory", "pids"} {
		if !available[controller] {
			missing = append(missing, controller)
		}
	}
	return missing
}

// cgroup is the part of the hierarchy that the user's limits are held by.
func (s System) cgroup() string {
	data, _ := os.ReadFile(filepath.Join(s.Root, "proc/self/cgroup"))
	return hw.UserCgroup(string(data))
}

func (s System) osImage() string {
	data, _ := os.ReadFile(filepath.Join(s.Root, "etc/os-release"))
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(value, `"'`)
		}
	}
	return "Linux"
}

// line is a file's first line.
func (s System) line(path string) string {
	data, _ := os.ReadFile(filepath.Join(s.Root, path))
	first, _, _ := bytes.Cut(data, []byte("\n"))
	return strings.TrimSpace(string(first))
}

// numbers reads lines of the form "Name: number unit".
func (s System) numbers(path string) map[string]int64 {
	data, _ := os.ReadFile(filepath.Join(s.Root, path))
	all := map[string]int64{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		if fields := strings.Fields(rest); len(fields) > 0 {
			all[name], _ = strconv.ParseInt(fields[0], 10, 64)
		}
	}
	return all
}
