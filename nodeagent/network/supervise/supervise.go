// Package supervise keeps the network process running where systemd does not.
// The agent uses it; it carries no code of the network process itself.
package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"bramble.dev/bramble/nodeagent/network/netapi"
	"bramble.dev/bramble/nodeagent/network/process"
)

const (
	firstPause = 200 * time.Millisecond
	longPause  = 30 * time.Second
	healthy    = 30 * time.Second // a process that ran this long starts the back-off anew
	answers    = 30 * time.Second // to answer first: Podman may have to make its namespaces
	maxLog     = 1 << 20
)

// Config is what a Supervisor is made of.
type Config struct {
	Command []string // the program and its arguments: bramble-network run
	Socket  string   // netapi.SocketPath
	LogFile string   // what it writes, emptied at a start when over 1 MiB; "": network.log beside Socket
	Log     *slog.Logger
}

// Supervisor keeps one network process running.
type Supervisor struct {
	config Config
	client *netapi.Client
}

// New returns a Supervisor. No I/O is done.
func New(c Config) *Supervisor {
	if c.LogFile == "" {
		c.LogFile = filepath.Join(filepath.Dir(c.Socket), "network.log")
	}
	client := netapi.NewClient(c.Socket)
	client.Patience = 0
	return &Supervisor{config: c, client: client}
}

// Run watches the process that answers on the socket, whoever started it, and
// starts one where none does, until ctx ends. It leaves the process running
// then: pods need it more than it needs us.
func (s *Supervisor) Run(ctx context.Context) error {
	defer s.client.Close()
	pause := firstPause
	for ctx.Err() == nil {
		began := time.Now()
		err := s.once(ctx)
		if ctx.Err() != nil {
			break
		}
		if time.Since(began) > healthy {
			pause = firstPause
		}
		s.config.Log.Warn("the network process ended and is started again", "err", err, "log", s.config.LogFile, "pause", pause)
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
		pause = min(2*pause, longPause)
	}
	return nil
}

// once watches the running process, or a new one, until it ends.
func (s *Supervisor) once(ctx context.Context) error {
	if pid, ok := s.answering(ctx); ok {
		s.config.Log.Info("the network process runs", "pid", pid)
		if err := process.Wait(ctx, pid); err != nil {
			return err
		}
		return errors.New("it ended")
	}
	cmd, err := s.start()
	if err != nil {
		return err
	}
	// A child of ours, it must be reaped; it is left alone when ctx ends.
	limited, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	if err := s.await(limited, cmd.Process.Pid); err != nil && ctx.Err() == nil {
		_ = process.Kill(ctx, cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		return err
	}
	s.config.Log.Info("the network process was started", "pid", cmd.Process.Pid)
	if err := process.Wait(ctx, cmd.Process.Pid); err != nil {
		return err
	}
	return fmt.Errorf("it ended: %w, saying: %s", cmd.Wait(), lastLine(s.config.LogFile))
}

// start starts the process in a session of its own. It writes to a file, not
// to us: it must survive us.
func (s *Supervisor) start() (*exec.Cmd, error) {
	if info, err := os.Stat(s.config.LogFile); err == nil && info.Size() > maxLog {
		if err := os.Truncate(s.config.LogFile, 0); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(filepath.Dir(s.config.LogFile), 0o700); err != nil {
		return nil, err
	}
	out, err := os.OpenFile(s.config.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot start the network process: %w", err)
	}
	defer out.Close()
	cmd := exec.Command(s.config.Command[0], s.config.Command[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the network process: %w", err)
	}
	return cmd, nil
}

// await blocks until process pid answers, has ended, or ctx has.
func (s *Supervisor) await(ctx context.Context, pid int) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if at, ok := s.answering(ctx); ok && at == pid {
			return nil
		}
		if !process.Alive(pid) {
			return fmt.Errorf("it ended before it answered, saying: %s", lastLine(s.config.LogFile))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it does not answer: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// lastLine is the last line of a file, or why it cannot be read.
func lastLine(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	text := strings.TrimRight(string(data), "\n")
	return text[strings.LastIndexByte(text, '\n')+1:]
}

func (s *Supervisor) answering(ctx context.Context) (pid int, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	health, err := s.client.Health(ctx)
	return health.PID, err == nil && health.PID > 0
}
