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

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/auth"
	"bramble.dev/bramble/server/tunnel"
)

// Limits of a connection.
const (
	headerTimeout  = 10 * time.Second
	idleTimeout    = 3 * time.Minute
	maxHeaderBytes = 64 << 10
	maxStreams     = 100 // of one HTTP/2 connection; net/http holds four times as many that wait
)

// settle is how long requests may finish after a stop was asked for, before
// their contexts end.
const settle = 250 * time.Millisecond

// front is the listening edge: TLS, HTTP and the nodes' tunnels on one port.
type front struct {
	http    *http.Server
	context context.Context    // of all requests and tunnels
	end     context.CancelFunc // of it
	tls     *tls.Config
	tunnel  func(*tls.Conn)
	group   sync.WaitGroup // handshakes and tunnels
	timeout time.Duration
	log     *slog.Logger
}

// newFront returns the edge for p. Nothing is served after ctx has ended, but
// requests are ended by shutdown only.
func newFront(ctx context.Context, p *parts, timeout time.Duration, log *slog.Logger) *front {
	requests, end := context.WithCancel(context.WithoutCancel(ctx))
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	srv := &http.Server{
		Handler:           p.handler,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		Protocols:         &protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ConnState:         p.nodeConns.state,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	config := &tls.Config{
		MinVersion:     tls.VersionTLS13,
		GetCertificate: p.serving.Certificate,
		// Asked for, not verified: the authenticator does that, by its own
		// clock and with an answer that says what is wrong.
		ClientAuth: tls.RequestClientCert,
		NextProtos: []string{api.ALPN, "h2", "http/1.1"},
	}
	tunnel := func(conn *tls.Conn) {
		if err := serveTunnel(requests, p, conn); err != nil {
			log.Info("tunnel refused", "from", conn.RemoteAddr().String(), "err", err)
		}
	}
	return &front{http: srv, context: requests, end: end, tls: config, tunnel: tunnel, timeout: timeout, log: log}
}

// serveTunnel serves one of a node's connections until it ends, and closes it.
func serveTunnel(ctx context.Context, p *parts, conn *tls.Conn) error {
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
		Listener: l, ctx: f.context, config: f.tls, tunnel: f.tunnel, log: f.log,
		accepted: make(chan accepted), closed: make(chan struct{}), group: &f.group,
	}
	f.group.Go(h.run) // from here on: shutdown may wait for the group as soon as this has returned
	return func() error {
		err := f.http.Serve(h)
		if errors.Is(err, http.ErrServerClosed) {
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
	err := f.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		f.log.Warn("requests cut off that did not end in time", "timeout", f.timeout)
		err = f.http.Close()
	}
	if err != nil {
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
