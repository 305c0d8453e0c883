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

// handshakes is a listener of connections whose TLS handshake is behind them.
// Nodes' tunnels are not given to Accept but to tunnel. A handshake has a
// goroutine of its own, which ends with it: it needs a stack many times as large
// as a connection that rests, which would keep it.
type handshakes struct {
	net.Listener
	ctx    context.Context // of handshakes and tunnels
	config *tls.Config
	tunnel func(*tls.Conn) // serves until the connection ends
	log    *slog.Logger

	accepted chan accepted
	closed   chan struct{}
	once     sync.Once
	group    *sync.WaitGroup // of all goroutines
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
			if !h.hand(accepted{err: err}) || errors.Is(err, net.ErrClosed) {
				return
			}
			continue // it is for http.Server to wait a little
		}
		h.group.Go(func() { h.greet(conn) })
	}
}

// Accept follows net.Listener.
func (h *handshakes) Accept() (net.Conn, error) {
	select {
	case a := <-h.accepted:
		return a.conn, a.err
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Close follows net.Listener.
func (h *handshakes) Close() error {
	h.once.Do(func() { close(h.closed) })
	return h.Listener.Close()
}

// hand gives a to Accept; it is false when nobody takes it any more.
func (h *handshakes) hand(a accepted) bool {
	select {
	case h.accepted <- a:
		return true
	case <-h.closed:
		return false
	}
}

// greet makes the handshake and hands the connection on.
func (h *handshakes) greet(raw net.Conn) {
	conn := tls.Server(raw, h.config)
	ctx, cancel := context.WithTimeout(h.ctx, headerTimeout)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
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
	if !h.hand(accepted{conn: conn}) {
		_ = raw.Close() // the server stops
	}
}

// speaksHTTP reports whether a connection begins as a plain HTTP request does.
func speaksHTTP(begin [5]byte) bool {
	switch string(begin[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "PATCH", "DELET", "OPTIO":
		return true
	}
	return false
}
