package runtime

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// forgetDead lets Podman start where all its processes were killed and its
// runtime directory was not emptied: it would look for namespaces that nobody
// holds any more, and refuse for ever. Without its mark of life, and its locks in
// memory, it takes what it finds for what a reboot has left, which it knows how
// to mend. It does nothing while a process that holds Podman's namespaces is alive.
func forgetDead(runtimeDir string) error {
	dir := filepath.Join(runtimeDir, "libpod", "tmp")
	uid := ownerOf(dir)
	if uid < 0 {
		return nil // emptied
	}
	pauseFile := filepath.Join(dir, "pause.pid")
	holder, readable := readPID(pauseFile)
	if holder > 0 && alive(holder) && ownerOf(filepath.Join("/proc", strconv.Itoa(holder))) == uid {
		return nil
	}
	stale := []string{pauseFile, filepath.Join(dir, "alive"), "/dev/shm/libpod_rootless_lock_" + strconv.Itoa(uid)}
	if anyMonitor(uid) { // Podman finds its namespaces by conmon
		if readable {
			return nil
		}
		stale = stale[:1]
	}
	for _, path := range stale {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// readPID reads a file that holds a process's id and nothing else, as Podman
// wants it. A missing file is readable, and names nobody.
func readPID(path string) (pid int, readable bool) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, true
	}
	pid, err = strconv.Atoi(string(data))
	return pid, err == nil
}

// anyMonitor says whether a conmon of the user runs, be the container ours or not.
func anyMonitor(uid int) bool {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		path := filepath.Join("/proc", e.Name())
		data, err := os.ReadFile(filepath.Join(path, "cmdline"))
		if err == nil && parseMonitor(data).name != "" && ownerOf(path) == uid {
			return true
		}
	}
	return false
}
