// Package runtime is the container engine's side of the node agent: pods,
// containers, images, events and logs of rootless Podman, by its API socket.
// It satisfies what package pod asks of an engine, in the types of package
// container, and holds no truth of its own: what there is, Podman says.
//
// Of Podman's v5 bindings it uses the connection and the types alone; the
// sub-packages with a function per endpoint would double the agent's memory.
// It speaks to Podman 4.3.1 (Debian 12) and later.
//
// Podman restarts nothing by itself: only the agent decides.
package runtime

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containers/podman/v5/pkg/bindings"
)

// Config is what a Runtime needs to know.
type Config struct {
	Socket     string // path of Podman's API socket
	RuntimeDir string // $XDG_RUNTIME_DIR of Podman
	StateDir   string // where containers' termination messages are kept; made when missing, with its parents
	PauseFile  string // the static pause program that infra containers run; see packaging/pause
	LogBytes   int64  // the size at which a container's log is rotated; 0: DefaultLogBytes
	LogFiles   int    // how many files a container's log may have, at least 2; 0: DefaultLogFiles
	// RegistryAnswer is how long a registry may take to a manifest; 0: DefaultRegistryAnswer.
	RegistryAnswer time.Duration
	// FetchDir is the Service's TempDir, and FetchStall how long nothing may move there
	// of a pull; "": a pull may take any time and room; 0: DefaultFetchStall.
	FetchDir   string
	FetchStall time.Duration
	Log        *slog.Logger
	// Command makes a command of Podman's user; nil: a command of this process's.
	Command func(ctx context.Context, name string, args ...string) *exec.Cmd
	Now     func() time.Time // nil: time.Now
}

// Runtime is rootless Podman as the pod workers see it. All methods are safe
// for concurrent use; each call blocks for as long as Podman takes for it.
//
// Errors wrap the sentinels of package container where a caller may decide by
// them. After an error that wraps container.ErrUnavailable the call may or may
// not have been carried out; every method may be repeated.
type Runtime struct {
	config Config
	calls  atomic.Int64 // requests in flight, the stream of events apart
	// beginning holds one while a pull begins; see beginFetch.
	beginning chan struct{}

	mu         sync.Mutex           // protects what follows
	connection *bindings.Connection // nil until Podman has answered once; it dials anew for each request
	pauseThere bool                 // the pause image was seen
	exits      map[string]exit      // by container id: what only an inspect tells of ended containers
	running    map[string]running   // by container id: as listed last
}

// The bounds of a container's log, fit for an SD card: together half of what the
// kubelet keeps.
const (
	DefaultLogBytes = 5 << 20
	DefaultLogFiles = 5
)

// The bounds of our patience with a registry are longer than one takes on a thin
// link. What it sends may take any time, as long as something comes.
const (
	DefaultRegistryAnswer = 2 * time.Minute
	DefaultFetchStall     = 2 * time.Minute
)

// New returns a Runtime. It does no I/O: Podman need not run yet.
func New(config Config) *Runtime {
	if config.RegistryAnswer == 0 {
		config.RegistryAnswer = DefaultRegistryAnswer
	}
	if config.FetchStall == 0 {
		config.FetchStall = DefaultFetchStall
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.LogBytes == 0 {
		config.LogBytes = DefaultLogBytes
	}
	if config.LogFiles == 0 {
		config.LogFiles = DefaultLogFiles
	}
	if config.Command == nil {
		config.Command = func(ctx context.Context, name string, args ...string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, name, args...)
			cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+config.RuntimeDir)
			return cmd
		}
	}
	return &Runtime{config: config, beginning: make(chan struct{}, 1), exits: map[string]exit{}, running: map[string]running{}}
}

// Idle says that no request is in flight, so that Podman's service may be
// restarted without cutting anything but the stream of events.
func (r *Runtime) Idle() bool { return r.calls.Load() == 0 }
