package nodeagent

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os/exec"
	"syscall"
	"time"
)

const keeperEvery = 2 * time.Second

// keeper makes sure that a service of the node listens on its socket: one that
// somebody else runs (systemd, an earlier agent) is taken as it is; where there
// is none it starts one, in a session of its own, that outlives the agent.
type keeper struct {
	name    string
	socket  string
	command []string // empty: never started by us
	changed func(up bool, err error)
	log     *slog.Logger
}

// run keeps the service up until ctx ends. changed is called from it at the
// first look and whenever the state changes.
func (k *keeper) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var known, up bool
	var ended chan error // of the process that we started; nil: none runs
	failures := 0
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			ended = nil
			k.log.Warn("a service of the node has ended", "service", k.name, "err", err)
		case <-timer.C:
		}
		err := k.answers(ctx)
		if now := err == nil; !known || now != up {
			known, up = true, now
			k.changed(up, err)
		}
		wait := keeperEvery
		switch {
		case up:
			failures = 0
		case ended == nil && len(k.command) > 0 && ctx.Err() == nil:
			if ended, err = k.start(ctx); err != nil {
				k.log.Error("cannot start a service of the node", "service", k.name, "err", err)
			}
			failures++
			fallthrough
		default:
			wait = min(keeperEvery, 50*time.Millisecond<<min(failures, 6))
		}
		timer.Reset(wait)
	}
}

func (k *keeper) answers(ctx context.Context) error {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", k.socket)
	if err != nil {
		return fmt.Errorf("%s does not answer: %w", k.name, err)
	}
	return conn.Close()
}

// start starts the service. What waits for its end does so for as long as the
// service lives: longer than ctx, by design.
func (k *keeper) start(ctx context.Context) (chan error, error) {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), k.command[0], k.command[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stderr = nil
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return ended, nil
}
