package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// Server is an API server with everything behind it. Make it with New; Run it
// once.
type Server struct {
	cfg       Config
	log       *slog.Logger
	listeners []net.Listener // given by the service manager, or none
	ready     chan struct{}
	address   string // set before ready is closed
}

// New returns a server. It does no I/O. listeners take the place of
// Config.Listen when there are any; Run closes them.
func New(cfg Config, listeners []net.Listener, log *slog.Logger) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("cannot use the configuration: %w", err)
	}
	return &Server{cfg: cfg, log: log, listeners: listeners, ready: make(chan struct{})}, nil
}

// Ready is closed when the API serves.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Address is the "host:port" that is listened on, once Ready is closed.
func (s *Server) Address() string { return s.address }

// Run serves until ctx ends, then ends watches and tunnels, lets other requests
// finish for a moment, and closes the store. It returns nil after an orderly
// stop, else what made it stop.
func (s *Server) Run(ctx context.Context) (err error) {
	began := time.Now()
	listeners, err := s.listen()
	if err != nil {
		return err
	}
	defer closeAll(listeners)
	p, err := open(ctx, s.cfg, s.address, s.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	debug.FreeOSMemory() // of what opening needed, once: a board's memory is its pods'
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range p.controllers {
		group.Go(func() error { return ended(ctx, c.name, c.run(ctx)) })
	}
	api := newFront(ctx, p, s.cfg.ShutdownTimeout, s.log)
	for _, l := range listeners {
		group.Go(api.accept(l))
	}
	group.Go(func() error {
		<-ctx.Done()
		return api.shutdown(context.WithoutCancel(ctx))
	})
	s.log.Info("serving", "address", s.address, "epoch", p.store.Epoch(), "kubeconfig", s.cfg.kubeconfig(), "took", time.Since(began).Round(time.Millisecond))
	close(s.ready)
	return group.Wait()
}

// ended makes an error of a controller's end, unless ctx has ended: nothing
// works for long without it.
func ended(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	if err == nil {
		err = errors.New("it returned")
	}
	return fmt.Errorf("cannot go on without the %s: %w", name, err)
}

// listen returns the sockets to serve on, and sets the address.
func (s *Server) listen() ([]net.Listener, error) {
	listeners := s.listeners
	if len(listeners) == 0 {
		l, err := net.Listen("tcp", s.cfg.Listen)
		if err != nil {
			return nil, fmt.Errorf("cannot listen on %s (%s): %w", s.cfg.Listen, listenAdvice(err), err)
		}
		listeners = []net.Listener{l}
	}
	s.address = listeners[0].Addr().String()
	return listeners, nil
}

// listenAdvice says what to do about an address that cannot be listened on.
func listenAdvice(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "is another server running? --listen takes another address"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "no interface of this machine has it: --listen :PORT takes all that there are"
	case errors.Is(err, syscall.EACCES):
		return "ports below 1024 are root's: give --listen one from 1024 on"
	}
	return "--listen takes HOST:PORT of this machine, or :PORT"
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		l.Close() // again, usually: serving has closed it
	}
}
