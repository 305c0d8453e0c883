package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"

	"bramble.dev/bramble/server/api"
)

// handshakes makes the TLS handshakes of a listener's connections, and hands them on:
// nodes' tunnels to tunnel, others to the door of those that are known or to that of
// strangers. A handshake has a goroutine of its own, which ends with it: it needs a
// stack many times as large as a connection that rests, which would keep it.
type handshakes struct {
	net.Listener
	ctx    context.Context // of handshakes and tunnels
	config *tls.Config
	lean   *tls.Config          // without HTTP/2
	known  func(*tls.Conn) bool // counts the connection with its user's, if it has one, or with strangers'
	tunnel func(*tls.Conn)      // serves until the connection ends
	limits *connLimits
	log    *slog.Logger

	users, strangers door
	closed           chan struct{}
	once             sync.Once
	group            *sync.WaitGroup // of all goroutines
}

// door is a listener of connections whose handshake is behind them.
type door struct {
	*handshakes
	accepted chan accepted
}

// accepted is an answer of Accept.
type accepted struct {
	conn net.Conn
	err  error
}

// run accepts until the listener is closed.
func (h *handshakes) run() {
	for {
		conn, err := h.Listener.Accept()
		if err != nil {
			if !h.users.hand(accepted{err: err}) || errors.Is(err, net.ErrClosed) {
				return
			}
			continue // it is for http.Server to wait a little
		}
		h.limits.handshakes.add(host(conn), conn) // here, in their order: the oldest may have to go
		h.group.Go(func() { h.greet(conn) })
	}
}

// Accept follows net.Listener.
func (d door) Accept() (net.Conn, error) {
	select {
	case a := <-d.accepted:
		return a.conn, a.err
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

// Close follows net.Listener. It closes both doors: the servers behind them stop together.
func (h *handshakes) Close() (err error) {
	h.once.Do(func() {
		close(h.closed)
		err = h.Listener.Close()
	})
	return err
}

// hand gives a to Accept; it is false when nobody takes it any more.
func (d door) hand(a accepted) bool {
	select {
	case d.accepted <- a:
		return true
	case <-d.closed:
		return false
	}
}

// greet makes the handshake and hands the connection on.
func (h *handshakes) greet(raw net.Conn) {
	conn, err := h.shake(raw)
	if err != nil {
		h.log.Debug("TLS handshake failed", "from", raw.RemoteAddr().String(), "err", err)
		if e := (tls.RecordHeaderError{}); errors.As(err, &e) && e.Conn != nil && speaksHTTP(e.RecordHeader) {
			_, _ = io.WriteString(e.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nThis is an HTTPS port: use https://\n") // best effort
		}
		_ = raw.Close() // the handshake's error says it all
		return
	}
	if conn.ConnectionState().NegotiatedProtocol == api.ALPN {
		h.group.Go(func() { h.tunnel(conn) })
		return
	}
	to := h.strangers
	if h.known(conn) {
		to = h.users
	}
	if !to.hand(accepted{conn: conn}) {
		h.limits.remove(conn)
		_ = raw.Close() // the server stops
	}
}

// shake makes the handshake. HTTP/2 is offered as long as few connections have it:
// each of them may have many requests under way.
func (h *handshakes) shake(raw net.Conn) (*tls.Conn, error) {
	from, config := host(raw), h.config
	defer h.limits.handshakes.remove(raw)
	if !h.limits.http2.fits(from, raw) {
		config = h.lean
	}
	conn := tls.Server(raw, config)
	ctx, cancel := context.WithTimeout(h.ctx, headerTimeout)
	defer cancel()
	err := conn.HandshakeContext(ctx)
	if err != nil || conn.ConnectionState().NegotiatedProtocol != "h2" {
		h.limits.http2.remove(raw)
	}
	return conn, err
}

// speaksHTTP reports whether a connection begins as a plain HTTP request does.
func speaksHTTP(begin [5]byte) bool {
	switch string(begin[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "PATCH", "DELET", "OPTIO":
		return true
	}
	return false
}
