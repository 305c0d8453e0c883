package nodeagent

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"bramble.dev/bramble/nodeagent/report"
	"bramble.dev/bramble/nodeagent/runtime"
)

// Config is how a node's agent is set up. Default fills in what is usual.
type Config struct {
	StateDir     string // the node's record and volumes; on disk
	RuntimeDir   string // $XDG_RUNTIME_DIR; emptied by a reboot
	PodmanSocket string // of Podman's API service
	NetworkBin   string // bramble-network; empty: the process is run by somebody else
	NetworkSock  string // its socket
	PauseFile    string // the static program of infra containers
	Version      string // of Bramble, without "v"
	// Patience is how long a start waits for the server before it runs the
	// record's pods.
	Patience time.Duration
	// A container's log is rotated at LogMaxBytes, and has at most LogMaxFiles files.
	LogMaxBytes int64
	LogMaxFiles int
	MaxPods     int // how many pods the node takes
	// HWRoot has another board's proc, sys and dev below it (hw.Config); "": this one's.
	HWRoot string
	Log    *slog.Logger
}

const (
	minLogBytes = 64 << 10
	maxMaxPods  = 1000
)

// Default returns the configuration of an ordinary user's agent: below
// /var/lib/bramble where that is the user's, else in the home directory.
func Default() Config {
	cfg := Config{
		StateDir:   DefaultStateDir(),
		RuntimeDir: os.Getenv("XDG_RUNTIME_DIR"),
		NetworkBin: beside("bramble-network"),
		PauseFile:  beside("pause"),
		Patience:   3 * time.Second,

		LogMaxBytes: runtime.DefaultLogBytes,
		LogMaxFiles: runtime.DefaultLogFiles,
		MaxPods:     report.DefaultMaxPods,
	}
	if cfg.RuntimeDir == "" {
		cfg.RuntimeDir = fmt.Sprintf("/run/user/%d", os.Getuid())
	}
	return cfg
}

// SystemStateDir is where the packages' user has the node's state.
const SystemStateDir = "/var/lib/bramble/agent"

// UserStateDir is where another user has it, by that user's home.
func UserStateDir(home string) string { return filepath.Join(home, ".local/share/bramble") }

// DefaultStateDir is /var/lib/bramble where this user may write to it, else
// ~/.local/share/bramble.
func DefaultStateDir() string {
	if probe, err := os.CreateTemp(SystemStateDir, ".probe-*"); err == nil {
		_ = probe.Close()
		_ = os.Remove(probe.Name())
		return SystemStateDir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return SystemStateDir
	}
	return UserStateDir(home)
}

// beside is a file of our package: next to this program, else where the package
// installs it.
func beside(name string) string {
	if self, err := os.Executable(); err == nil {
		path := filepath.Join(filepath.Dir(self), name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return filepath.Join("/usr/lib/bramble", name)
}

// Validate says what is missing, and fills in what follows from the rest.
func (c *Config) Validate() error {
	switch {
	case c.StateDir == "":
		return errors.New("state-dir: must be set")
	case c.RuntimeDir == "":
		return errors.New("the runtime directory must be set")
	case c.LogMaxBytes < minLogBytes:
		return fmt.Errorf("container-log-max-size: must be at least %d bytes (64Ki)", minLogBytes)
	case c.LogMaxFiles < 2:
		return errors.New("container-log-max-files: must be at least 2")
	case c.MaxPods < 1 || c.MaxPods > maxMaxPods:
		return fmt.Errorf("max-pods: must be from 1 to %d", maxMaxPods)
	case c.Log == nil:
		return errors.New("the log must be set")
	}
	if info, err := os.Stat(c.RuntimeDir); err != nil || !info.IsDir() {
		return fmt.Errorf("cannot use the runtime directory: %s is no directory: let the user linger (loginctl enable-linger) or set XDG_RUNTIME_DIR; without systemd, make it as root at each boot, owned by the user, mode 0700", c.RuntimeDir)
	}
	if c.PodmanSocket == "" {
		c.PodmanSocket = filepath.Join(c.RuntimeDir, "podman", "podman.sock")
	}
	if c.NetworkSock == "" {
		c.NetworkSock = filepath.Join(c.RuntimeDir, "bramble", "network.sock")
	}
	return nil
}

// own is the agent's directory below the runtime directory.
func (c *Config) own(name string) string { return filepath.Join(c.RuntimeDir, "bramble", name) }

// fetchDir is where Podman keeps the parts of images that it is fetching. They are
// large, and so on the disk, and private to this agent, which empties it.
func (c *Config) fetchDir() string { return filepath.Join(c.StateDir, "fetching") }
