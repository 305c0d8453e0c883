package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Service makes sure that Podman's API service answers on its socket. Whoever
// runs it already (systemd by its socket, an earlier agent, a person) is left to
// it; where nobody does, Run starts `podman system service` in a session of its
// own: it outlives the agent, and the next agent finds it by its socket.
//
// A service that Run can see the process of is started anew when it ends, when
// it has been silent for long, or when it has grown past MaxRSS, as it does over
// time (podman#14879), and is idle.
type Service struct {
	Socket     string
	RuntimeDir string // $XDG_RUNTIME_DIR of Podman
	// TempDir is where a service that Run starts keeps what it fetches until that is
	// whole. Run makes it, and empties it before each start, as a service that was
	// killed cannot; empty: Podman's choice, which is /var/tmp.
	TempDir string
	Log     *slog.Logger
	// Idle says that nothing would be lost by a restart, as Runtime.Idle; nil:
	// never.
	Idle func() bool
	// OnChange is called from Run when the service begins to answer (nil), and
	// each time that it does not or cannot be made to; nil: nobody is told.
	OnChange func(err error)
	// Command makes the command of Podman; nil: exec.CommandContext.
	Command  func(ctx context.Context, name string, args ...string) *exec.Cmd
	Interval time.Duration // between looks at it; 0: 30 s
	Patience time.Duration // for its answer; 0: 10 s
	MaxRSS   int64         // bytes; 0: 150 MB
}

// How long a service may take to start, to answer, and to end.
const (
	startLimit  = 30 * time.Second
	answerLimit = 10 * time.Second
	endLimit    = 10 * time.Second
)

// mostSilences is how many looks in a row a service may leave without an answer
// before it is ended: some minutes, for a board that is busy with its card.
const mostSilences = 5

// Run keeps the service up until ctx ends, and returns ctx's error.
func (s *Service) Run(ctx context.Context) error {
	pause, silences := shortestRetry, 0
	for ctx.Err() == nil {
		server, err := s.ensure(ctx)
		if ctx.Err() != nil {
			server.close()
			break
		}
		s.changed(err)
		if err == nil {
			silences = 0
			began := time.Now()
			s.attend(ctx, server)
			server.close()
			if time.Since(began) > longestRetry {
				pause = shortestRetry
				continue
			}
		} else {
			s.Log.Error("podman's service cannot be used", "err", err, "retry", pause)
			if silences++; server != nil && silences >= mostSilences {
				s.endSilent(ctx, server)
			}
			server.close()
		}
		wait(ctx, pause) // also for one that answers and ends at once
		pause = min(2*pause, longestRetry)
	}
	return ctx.Err()
}

// endSilent ends a service that listens and does not answer.
func (s *Service) endSilent(ctx context.Context, server *process) {
	if server != nil {
		s.Log.Warn("podman's service is silent and is started anew", "pid", server.pid)
	}
	server.end(ctx)
}

func (s *Service) changed(err error) {
	if s.OnChange != nil {
		s.OnChange(err)
	}
}

// ensure returns when the service answers. The process is nil when it is not to
// be seen: systemd listens in its place. One that listens and does not answer
// comes with the error.
func (s *Service) ensure(ctx context.Context) (*process, error) {
	server, err := s.ping(ctx)
	if err == nil || !isGone(err) {
		return server, err
	}
	if err := s.clear(); err != nil {
		return nil, err
	}
	cmd := s.command(context.WithoutCancel(ctx), "system", "service", "--time=0", "unix://"+s.Socket)
	cmd.Stderr = os.Stderr // the agent's log
	if s.TempDir != "" {
		cmd.Env = append(cmd.Environ(), "TMPDIR="+s.TempDir)
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start podman's service (is podman installed?): %w", err)
	}
	s.Log.Info("started podman's service", "pid", cmd.Process.Pid)
	server, err = s.awaitStart(ctx, cmd)
	if server != nil {
		server.child = cmd.Process
	}
	return server, err
}

// command is a command of Podman.
func (s *Service) command(ctx context.Context, args ...string) *exec.Cmd {
	if s.Command == nil {
		return exec.CommandContext(ctx, "podman", args...)
	}
	return s.Command(ctx, "podman", args...)
}

// awaitStart waits until the service answers or its first process has ended.
func (s *Service) awaitStart(ctx context.Context, cmd *exec.Cmd) (*process, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	first, err := openProcess(cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	defer first.close()
	for {
		server, err := s.ping(ctx)
		if err == nil {
			return server, nil
		}
		server.close()
		switch {
		case first.wait(ctx, 20*time.Millisecond):
			_ = cmd.Wait() // does not block: it has ended
			return nil, s.endedAtOnce(ctx, cmd.ProcessState)
		case ctx.Err() != nil:
			_ = cmd.Process.Kill()
			return nil, fmt.Errorf("podman's service does not answer: %w", err)
		}
	}
}

// clear makes place for a new service: a socket that nobody listens on.
func (s *Service) clear() error {
	if err := os.MkdirAll(filepath.Dir(s.Socket), 0o700); err != nil {
		return err
	}
	if err := os.Remove(s.Socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove the socket of a dead podman service: %w", err)
	}
	if err := forgetDead(s.RuntimeDir); err != nil {
		return fmt.Errorf("cannot clear what dead podman processes have left: %w", err)
	}
	if s.TempDir == "" {
		return nil
	}
	if err := os.MkdirAll(s.TempDir, 0o700); err != nil {
		return fmt.Errorf("cannot make the folder for what podman fetches: %w", err)
	}
	if err := empty(s.TempDir); err != nil { // it costs room, and stops no service
		s.Log.Warn("cannot remove what a dead podman service had fetched", "err", err)
	}
	return nil
}

// empty removes all that is in a directory.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// attend returns when the service has ended, or was ended because it had not
// answered for long.
func (s *Service) attend(ctx context.Context, server *process) {
	interval := s.Interval
	if interval == 0 {
		interval = 30 * time.Second
	}
	silences := 0
	for {
		switch {
		case server == nil:
			wait(ctx, interval)
		case server.wait(ctx, interval):
			s.Log.Warn("podman's service has ended", "pid", server.pid)
			return
		}
		if ctx.Err() != nil {
			return
		}
		again, err := s.ping(ctx)
		again.close()
		switch {
		case isGone(err):
			server.end(ctx) // alive without its socket it is of no use
			return
		case errors.Is(err, errDatabase):
			s.changed(err)
			server.end(ctx) // 4.3.1 never lets go of the database's lock after this
			return
		case err != nil && ctx.Err() == nil:
			s.changed(err)
			if silences++; silences >= mostSilences {
				s.endSilent(ctx, server)
				return
			}
			continue
		case silences > 0:
			s.changed(nil)
			silences = 0
		}
		if server != nil && s.outgrown(server) {
			s.Log.Info("podman's service has grown too large and is started anew", "pid", server.pid)
			server.end(ctx)
			return
		}
	}
}

func (s *Service) outgrown(server *process) bool {
	limit := s.MaxRSS
	if limit == 0 {
		limit = 150 << 20
	}
	return s.Idle != nil && s.Idle() && server.rss() > limit
}

// ping asks the service for an answer, for which it has to read its database, and returns the process that listens, also
// where it does not answer, or nil where that is not Podman itself.
func (s *Service) ping(ctx context.Context) (*process, error) {
	patience := s.Patience
	if patience == 0 {
		patience = answerLimit
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var pid atomic.Int64
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dialer(s.Socket, &pid)}}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://d"+lookEndpoint, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(q)
	if err != nil {
		err = fmt.Errorf("podman's service does not answer on %s: %w", s.Socket, err)
	} else {
		err = refusedLook(response)
	}
	listener := int(pid.Load())
	if !isPodman(listener) {
		return nil, err
	}
	server, openErr := openProcess(listener)
	return server, errors.Join(err, openErr)
}

// isGone says that nobody listens, not merely that the answer takes long.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ESRCH)
}

// wait waits for d or the end of ctx.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
