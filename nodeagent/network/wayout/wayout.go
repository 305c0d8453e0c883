// Package wayout gives the node's network namespace its way out: pasta or
// slirp4netns, which carry its connections as connections of an ordinary user
// of the host. The program outlives us, so that a restart of the network
// process cuts nothing; it is found again by its arguments, never by memory.
package wayout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"
)

const (
	firstPause = time.Second
	longPause  = 30 * time.Second
	healthy    = time.Minute // a program that ran this long starts the back-off anew
	comeUp     = 5 * time.Second
)

// Config is what the way out leads from.
type Config struct {
	Path    string       // the pinned namespace, under a name that only the way out uses
	Link    netip.Prefix // a /24 for the link
	MTU     int
	Program string // the only one allowed, or empty
}

// Status says how the way out is.
type Status struct {
	Program string // the program that works now, or empty with Err
	Err     error
}

// Keeper keeps one way out running. All methods are safe for concurrent use.
type Keeper struct {
	log     *slog.Logger
	logFile string
	wake    chan struct{} // holds one: the configuration changed

	mu      sync.Mutex // protects all below
	config  Config
	status  Status
	settled chan struct{} // closed when status tells of this configuration
}

// New returns a Keeper that does nothing before Set. The programs write to logFile.
func New(log *slog.Logger, logFile string) *Keeper {
	return &Keeper{log: log, logFile: logFile, wake: make(chan struct{}, 1), settled: make(chan struct{})}
}

// Set says what the way out is to be; the same again changes nothing.
func (k *Keeper) Set(c Config) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.config == c {
		return
	}
	k.config, k.status, k.settled = c, Status{Err: errors.New("it is being started")}, make(chan struct{})
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Status returns how the way out is. It blocks until that is known of what was
// Set last, or until ctx ends.
func (k *Keeper) Status(ctx context.Context) Status {
	k.mu.Lock()
	settled := k.settled
	k.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-settled:
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.status
}

func (k *Keeper) current() Config {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.config
}

// report records the status of c, unless something else was Set meanwhile.
func (k *Keeper) report(c Config, s Status) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.config != c {
		return
	}
	k.status = s
	select {
	case <-k.settled:
	default:
		close(k.settled)
	}
}

// errChanged ends a program whose configuration is no longer wanted.
var errChanged = errors.New("the way out's settings changed")

// errEnded means that a program ended which had worked.
var errEnded = errors.New("ended")

// Run keeps the way out running until ctx ends, and leaves it running then.
func (k *Keeper) Run(ctx context.Context) error {
	routes, err := routeChanges(ctx)
	if err != nil {
		return err
	}
	pause, turn := firstPause, 0
	for ctx.Err() == nil {
		c := k.current()
		if c.Path == "" {
			k.rest(ctx, longPause, nil)
			continue
		}
		began := time.Now()
		err := k.once(ctx, c, turn)
		if ctx.Err() != nil || errors.Is(err, errChanged) {
			pause = firstPause
			continue
		}
		if !errors.Is(err, errEnded) {
			turn++ // one that worked is the best choice again, however it ended
		}
		k.report(c, Status{Err: err})
		k.log.Warn("the way out does not work", "err", err, "retry", pause)
		if time.Since(began) > healthy {
			pause = firstPause
		}
		k.rest(ctx, pause, routes)
		pause = min(2*pause, longPause)
	}
	return nil
}

// rest waits out a pause, shortened by a change of the configuration or of the
// host's routes: a link that came up is what a way out mostly waits for.
func (k *Keeper) rest(ctx context.Context, pause time.Duration, routes <-chan struct{}) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-k.wake:
	case <-routes:
	case <-timer.C:
	}
}

// once takes over the running program or starts one, and watches it until it
// ends (the error says why), c is no longer wanted or ctx ends. turn picks among
// the candidates: where one is forbidden by a security profile, the next may do.
func (k *Keeper) once(ctx context.Context, c Config, turn int) error {
	r, err := adopt(ctx, c)
	if err != nil {
		return err
	}
	if r == nil {
		found := candidates(c)
		if len(found) == 0 {
			return errors.New("no program for it is installed: apt install slirp4netns (small) or passt (fast)")
		}
		if r, err = start(found[turn%len(found)], c, k.logFile); err != nil {
			return err
		}
	}
	stop := r.watch(ctx)
	defer stop()
	if err := r.comeUp(ctx, c); err != nil {
		return fmt.Errorf("%s: %w", r.name, errors.Join(err, r.end(ctx)))
	}
	k.report(c, Status{Program: r.name})
	k.log.Info("the way out works", "program", r.name, "pid", r.pid)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.ended:
			err := r.end(ctx)
			return errors.Join(fmt.Errorf("%s %w: %s", r.name, errEnded, r.lastWords()), err)
		case <-k.wake:
			if k.current() != c {
				return errors.Join(errChanged, r.end(ctx))
			}
		}
	}
}
