package network

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"bramble.dev/bramble/nodeagent/network/netapi"
	"bramble.dev/bramble/nodeagent/network/userns"
)

// ErrMoved is returned by Run when the process must be started again, from
// outside, to be where containers are made.
var ErrMoved = errors.New("podman's namespaces or the runtime directory were replaced")

const lookAround = 5 * time.Second

// watchSurroundings returns ErrMoved when Podman would make containers in other
// namespaces than ours, or our socket is no longer where clients look.
func (s *Server) watchSurroundings(ctx context.Context) error {
	tick := time.NewTicker(lookAround)
	defer tick.Stop()
	for {
		if err := s.moved(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *Server) moved() error {
	pid, err := userns.PausePID(s.config.RuntimeDir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMoved, err)
	}
	inside, err := userns.Inside(pid)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMoved, err)
	}
	if !inside {
		return fmt.Errorf("%w: podman's pause process %d is in other namespaces", ErrMoved, pid)
	}
	if now, err := os.Lstat(s.files.socket()); err != nil || !os.SameFile(now, s.socket) {
		return fmt.Errorf("%w: %s is not our socket any more", ErrMoved, s.files.socket())
	}
	return nil
}

// checkPlace refuses to make what containers could not see.
func (s *Server) checkPlace() error {
	if err := s.moved(); err != nil {
		return &netapi.Error{Status: http.StatusServiceUnavailable, Message: err.Error() + ": this process is being restarted"}
	}
	return nil
}
