package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/auth"
	"bramble.dev/bramble/server/tunnel"
)

// Limits of a connection. Of streams, net/http holds four times as many that wait for
// handlers of others that were reset.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 3 * time.Minute
	receiveBuffer = 256 << 10 // of an HTTP/2 connection: bodies that nobody has read yet

	userHeaderBytes, userStreams         = 64 << 10, 32 // of one HTTP/2 connection of a user
	strangerHeaderBytes, strangerStreams = 16 << 10, 8
)

// settle is how long requests may finish after a stop was asked for, before
// their contexts end.
const settle = 250 * time.Millisecond

// front is the listening edge: TLS, HTTP and the nodes' tunnels on one port.
type front struct {
	users     *http.Server // for who showed a certificate of this cluster
	strangers *http.Server // for all others
	limits    *connLimits
	known     func(*tls.Conn) bool
	context   context.Context    // of all requests and tunnels
	end       context.CancelFunc // of it
	tls       *tls.Config
	tunnel    func(*tls.Conn)
	group     sync.WaitGroup // handshakes and tunnels
	timeout   time.Duration
	log       *slog.Logger
}

// newFront returns the edge for p. Nothing is served after ctx has ended, but
// requests are ended by shutdown only.
func newFront(ctx context.Context, p *parts, timeout time.Duration, log *slog.Logger) *front {
	requests, end := context.WithCancel(context.WithoutCancel(ctx))
	f := &front{context: requests, end: end, limits: newConnLimits(), timeout: timeout, log: log}
	f.users = f.server(p, userStreams, userHeaderBytes)
	f.strangers = f.server(p, strangerStreams, strangerHeaderBytes)
	f.tls = &tls.Config{
		MinVersion:     tls.VersionTLS13,
		GetCertificate: p.serving.Certificate,
		// Asked for, not verified: the authenticator does that, by its own
		// clock and with an answer that says what is wrong.
		ClientAuth: tls.RequestClientCert,
		NextProtos: []string{api.ALPN, "h2", "http/1.1"},
	}
	f.known = func(conn *tls.Conn) bool {
		if user, err := userOf(p, conn); err == nil {
			f.limits.users.add(user.Name, conn)
			return true
		}
		f.limits.strangers.add(host(conn), conn)
		return false
	}
	f.tunnel = func(conn *tls.Conn) {
		if err := serveTunnel(requests, p, f.limits.tunnels, conn); err != nil {
			log.Info("tunnel refused", "from", conn.RemoteAddr().String(), "err", err)
		}
	}
	return f
}

// server returns what serves p's API on connections of one kind.
func (f *front) server(p *parts, streams, headerBytes int) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &http.Server{
		Handler:           p.handler,
		BaseContext:       func(net.Listener) context.Context { return f.context },
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerBytes,
		Protocols:         &protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: streams, MaxReceiveBufferPerConnection: receiveBuffer},
		ConnState: func(conn net.Conn, state http.ConnState) {
			p.nodeConns.state(conn, state)
			if c, ok := conn.(*tls.Conn); ok && (state == http.StateClosed || state == http.StateHijacked) {
				f.limits.remove(c)
			}
		},
		ErrorLog: slog.NewLogLogger(f.log.Handler(), slog.LevelDebug),
	}
}

// userOf is whom a connection's certificate names, if it is one of this cluster.
func userOf(p *parts, conn *tls.Conn) (api.User, error) {
	certs := conn.ConnectionState().PeerCertificates
	if len(certs) == 0 {
		return api.User{}, errors.New("no client certificate was shown")
	}
	return p.authenticator.User(certs)
}

// serveTunnel serves one of a node's connections until it ends, and closes it.
func serveTunnel(ctx context.Context, p *parts, limit *connLimit, conn *tls.Conn) error {
	defer conn.Close()
	certs := conn.ConnectionState().PeerCertificates
	if len(certs) == 0 {
		return refuse(conn, errors.New("a tunnel needs a node's client certificate"))
	}
	if tcp, ok := conn.NetConn().(*net.TCPConn); ok {
		if err := tcp.SetKeepAlive(false); err != nil { // the tunnel has its own
			return refuse(conn, err)
		}
	}
	p.nodeConns.add(conn)
	defer p.nodeConns.remove(conn)
	user, err := p.authenticator.User(certs)
	if errors.Is(err, auth.ErrExpired) {
		err = tunnel.ErrExpired
	}
	if err != nil {
		return refuse(conn, err)
	}
	limit.add(user.Name, conn)
	defer limit.remove(conn)
	return p.hub.Serve(ctx, conn, user, p.handler)
}

// refuse tells the node why, as far as it listens.
func refuse(conn *tls.Conn, reason error) error {
	if err := conn.SetWriteDeadline(time.Now().Add(headerTimeout)); err != nil {
		return errors.Join(reason, err)
	}
	return errors.Join(reason, tunnel.Refuse(conn, reason))
}

// accept begins to accept connections of l. The function that it returns serves
// them until shutdown, also when that was called before.
func (f *front) accept(l net.Listener) (serve func() error) {
	h := &handshakes{
		Listener: l, ctx: f.context, config: f.tls, lean: f.tls.Clone(), known: f.known, tunnel: f.tunnel, limits: f.limits, log: f.log,
		closed: make(chan struct{}), group: &f.group,
	}
	h.lean.NextProtos = []string{api.ALPN, "http/1.1"}
	h.users, h.strangers = door{h, make(chan accepted)}, door{h, make(chan accepted)}
	f.group.Go(h.run) // from here on: shutdown may wait for the group as soon as this has returned
	return func() error {
		var both errgroup.Group
		both.Go(func() error { return f.users.Serve(h.users) })
		both.Go(func() error { return f.strangers.Serve(h.strangers) })
		err := both.Wait()
		if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) { // the first to stop closes both doors
			return nil
		}
		return fmt.Errorf("cannot serve on %s: %w", l.Addr(), err)
	}
}

// shutdown accepts nothing more, ends watches and tunnels, and waits for the
// rest; what is not done in time is cut off. A client that holds on does not
// make the stop a failure.
func (f *front) shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	timer := time.AfterFunc(settle, f.end)
	defer timer.Stop()
	defer f.end()
	var both errgroup.Group
	for _, server := range []*http.Server{f.users, f.strangers} {
		both.Go(func() error {
			err := server.Shutdown(ctx)
			if errors.Is(err, context.DeadlineExceeded) {
				f.log.Warn("requests cut off that did not end in time", "timeout", f.timeout)
				err = server.Close()
			}
			return err
		})
	}
	if err := both.Wait(); err != nil {
		return fmt.Errorf("cannot close all connections: %w", err)
	}
	f.end()
	ended := make(chan struct{})
	go func() {
		f.group.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		f.log.Warn("tunnels left that did not end in time", "timeout", f.timeout)
	}
	return nil
}
