package runtime

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// monitor is a conmon process with the container that it was started for.
type monitor struct {
	pid      int
	id, name string
	runtime  string // path of the OCI runtime
	bundle   string // the container's directory in Podman's storage
}

// endOrphans ends what Podman has left of containers that it knows no more:
// when its service is killed while it starts one, the container's first process
// waits for ever to be told to go on, and conmon waits for that. Only containers
// of ours whose name contains part are looked at.
//
// A container is in Podman's books before its conmon starts, so that one that
// was seen first and is not in the books after that is an orphan.
func (r *Runtime) endOrphans(ctx context.Context, part string) error {
	monitors, parents := monitors(part, ownerOf(r.config.Socket))
	if len(monitors) == 0 {
		return nil
	}
	all, err := r.containers(ctx, "")
	if err != nil {
		return fmt.Errorf("cannot look for orphaned containers: %w", err)
	}
	known := map[string]bool{}
	for _, c := range all {
		known[c.ID] = true
	}
	for _, m := range monitors {
		if known[m.id] {
			continue
		}
		r.releaseShm(ctx, m)
		for pid, parent := range parents {
			// conmon ends by itself when its child has. Podman as its child
			// cleans up after an ordinary end.
			if parent == m.pid && program(pid) != "podman" {
				r.config.Log.Info("ending a process of a container that podman has forgotten", "container", m.name, "pid", pid)
				_ = unix.Kill(pid, unix.SIGKILL) // it may have ended
			}
		}
	}
	return nil
}

// releaseShm takes away the mount that a container was given /dev/shm from:
// while it is there, the storage of a container that Podman has forgotten cannot
// be removed. In the container it stays.
func (r *Runtime) releaseShm(ctx context.Context, m monitor) {
	if m.bundle == "" {
		return
	}
	pid := strconv.Itoa(m.pid)
	cmd := r.config.Command(ctx, "nsenter", "--preserve-credentials", "--user", "--mount", "--target", pid, "umount", "--lazy", filepath.Join(m.bundle, "shm"))
	if out, err := cmd.CombinedOutput(); err != nil { // most have none
		r.config.Log.Debug("no mount to take away", "container", m.name, "err", err, "words", string(bytes.TrimSpace(out)))
	}
}

// monitors returns the user's conmon processes of containers of ours whose name
// contains part, and the parent of every process.
func monitors(part string, uid int) ([]monitor, map[int]int) {
	var found []monitor
	parents := map[int]int{}
	entries, _ := os.ReadDir("/proc") // no /proc: none found
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		parents[pid] = parentOf(pid)
		data, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil {
			continue
		}
		m := parseMonitor(data)
		if m.pid = pid; strings.HasPrefix(m.name, "k8s_") && strings.Contains(m.name, part) && ownerOf(filepath.Join("/proc", e.Name())) == uid {
			found = append(found, m)
		}
	}
	return found, parents
}

// parseMonitor reads a command line; the name is empty where it is not conmon's.
func parseMonitor(cmdline []byte) (m monitor) {
	args := strings.Split(string(cmdline), "\x00")
	if filepath.Base(args[0]) != "conmon" {
		return m
	}
	for i := 1; i+1 < len(args); i++ {
		switch args[i] {
		case "-c":
			m.id = args[i+1]
		case "-n":
			m.name = args[i+1]
		case "-r":
			m.runtime = args[i+1]
		case "-b":
			m.bundle = args[i+1]
		}
	}
	return m
}

// program is the name by which a process was started, empty when it has ended.
func program(pid int) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	first, _, _ := bytes.Cut(data, []byte{0})
	if len(first) == 0 {
		return ""
	}
	return filepath.Base(string(first))
}

// parentOf reads a process's parent (proc(5), stat), 0 when it has ended.
func parentOf(pid int) int {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	rest := data[bytes.LastIndexByte(data, ')')+1:] // a name may hold anything
	fields := bytes.Fields(rest)
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(string(fields[1]))
	return parent
}

// ownerOf is the user of a file, or of a process by its directory in /proc; -1
// where there is none.
func ownerOf(path string) int {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return -1
	}
	return int(st.Uid)
}
