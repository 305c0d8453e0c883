// Package network is the network process of a node: inside the user and mount
// namespaces of the user's rootless Podman it makes the node's network
// namespace (a bridge, its way out, address translation, a relay for DNS) and
// one for each pod, and serves netapi to the agent over a unix socket. All that
// pods' traffic needs is kernel state that outlives it; a new process takes it
// over as it finds it. cmd/bramble-network runs it; the agent uses only netapi.
package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"bramble.dev/bramble/nodeagent/network/netapi"
	"bramble.dev/bramble/nodeagent/network/wayout"
)

// Config is what a Server is made of.
type Config struct {
	RuntimeDir string // XDG_RUNTIME_DIR
	PluginDir  string // holds the CNI plugins bridge and static
	ResolvConf string // the host's resolvers; empty: /etc/resolv.conf
	Version    string
	Log        *slog.Logger
}

// Server is the network process. It must run in Podman's user and mount
// namespaces (package userns), with the host's network namespace.
type Server struct {
	config Config
	files  files
	wayOut *wayout.Keeper
	relay  *relay
	ports  *hostPorts
	socket os.FileInfo // of our socket; set before anything is served

	// work is held by what changes namespaces: one change at a time.
	work chan struct{}

	mu   sync.Mutex // protects node
	node *netapi.Node
}

// New returns a Server. No I/O is done.
func New(c Config) *Server {
	if c.ResolvConf == "" {
		c.ResolvConf = "/etc/resolv.conf"
	}
	f := files{c.RuntimeDir}
	return &Server{
		config: c, files: f, work: make(chan struct{}, 1),
		wayOut: wayout.New(c.Log, f.wayOutLog()),
		relay:  newRelay(c.ResolvConf, c.Log),
		ports:  newHostPorts(f.node(), c.Log),
	}
}

// Run takes over what is there and serves until ctx ends, or until Podman's
// namespaces or the runtime directory are no longer the ones that it started
// in: then it returns ErrMoved, to be started again. Pods' traffic goes on.
func (s *Server) Run(ctx context.Context) error {
	if err := os.MkdirAll(s.files.netns(), 0o700); err != nil {
		return err
	}
	lock, err := s.lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := s.recall(); err != nil {
		s.config.Log.Error("cannot take the node's network over; the agent will set it up anew", "err", err)
	}
	listener, err := s.listen()
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.wayOut.Run(ctx) })
	g.Go(func() error { return s.relay.run(ctx) })
	s.ports.begin(ctx)
	g.Go(func() error { return s.ports.run(ctx) })
	g.Go(func() error { return s.watchSurroundings(ctx) })
	g.Go(func() error { return s.serve(ctx, listener) })
	return g.Wait()
}

func (s *Server) serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(s.config.Log.Handler(), slog.LevelWarn),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot serve: %w", err)
	}
	return nil
}

// listen opens the socket; the lock makes sure that nobody else serves there.
func (s *Server) listen() (net.Listener, error) {
	path := s.files.socket()
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	// Made under a name of its own: when clients find it, it is 0600 and listens.
	early := path + ".new"
	if err := os.Remove(early); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: early, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(early, 0o600), os.Rename(early, path)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if s.socket, err = os.Lstat(path); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return peerListener{l, s.config.Log}, nil
}

// hold waits for the right to change namespaces; release gives it back.
func (s *Server) hold(ctx context.Context) (release func(), err error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case s.work <- struct{}{}:
		return func() { <-s.work }, nil
	}
}

// files names the process's files below the runtime directory.
type files struct{ runtimeDir string }

func (f files) dir() string           { return filepath.Dir(f.socket()) }
func (f files) socket() string        { return netapi.SocketPath(f.runtimeDir) }
func (f files) lock() string          { return filepath.Join(f.dir(), "network.lock") }
func (f files) record() string        { return filepath.Join(f.dir(), "network-node.json") }
func (f files) wayOutLog() string     { return filepath.Join(f.dir(), "network-wayout.log") }
func (f files) log() string           { return filepath.Join(f.dir(), "network.log") } // supervise's
func (f files) cni() string           { return filepath.Join(f.dir(), "cni") }
func (f files) netns() string         { return filepath.Join(f.dir(), "netns") }
func (f files) node() string          { return f.pod(netapi.NodeName) }
func (f files) pod(uid string) string { return filepath.Join(f.netns(), uid) }

// wayOutNetns is the node's namespace once more, where the security profile of
// Debian's pasta lets it look.
func (f files) wayOutNetns() string { return filepath.Join(f.runtimeDir, "netns", "bramble-node") }
