// Package systemd is what a service of ours tells its service manager, and what
// it gets from it: readiness, stopping, the watchdog (sd_notify(3)) and sockets
// (sd_listen_fds(3)). Without a service manager all of it does nothing.
package systemd

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
)

// Ready says that the service serves.
func Ready() error { return notify(daemon.SdNotifyReady) }

// Stopping says that the service begins to shut down.
func Stopping() error { return notify(daemon.SdNotifyStopping) }

func notify(state string) error {
	if _, err := daemon.SdNotify(false, state); err != nil {
		return fmt.Errorf("cannot notify the service manager: %w", err)
	}
	return nil
}

// Watchdog tells the service manager that the service is alive, at a third of
// the interval that it asked for, whenever healthy returns nil. It blocks until
// ctx ends, or returns at once when nobody asked.
func Watchdog(ctx context.Context, healthy func(context.Context) error) error {
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		return fmt.Errorf("cannot read the watchdog's interval: %w", err)
	}
	if interval == 0 {
		return nil
	}
	ticker := time.NewTicker(interval / 3)
	defer ticker.Stop()
	for {
		if healthy(ctx) == nil {
			if err := notify(daemon.SdNotifyWatchdog); err != nil {
				return err
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// Listeners returns the sockets that the service manager opened for this
// process, in the order of its unit; none when it was started by hand. Call it
// once: the sockets are then taken.
func Listeners() ([]net.Listener, error) {
	all, err := activation.Listeners()
	if err != nil {
		return nil, fmt.Errorf("cannot take the service manager's sockets: %w", err)
	}
	var out []net.Listener
	for _, l := range all {
		if l != nil { // a socket that does not listen
			out = append(out, l)
		}
	}
	return out, nil
}
