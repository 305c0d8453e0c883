package netapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// Dial opens a TCP connection to a pod's address from the node's namespace. It
// blocks until the pod has accepted; ctx bounds that, not the connection. The
// connection's CloseWrite half-closes it.
func (c *Client) Dial(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
	conn, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	stream, err := upgrade(conn, addr)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("cannot dial %s: %w", addr, err)
	}
	return stream, nil
}

func upgrade(conn *net.UnixConn, addr netip.AddrPort) (*Stream, error) {
	req, err := http.NewRequest(http.MethodGet, "http://network/v1/dial?address="+addr.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "tcp")
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		body, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
		return nil, answerError(res.StatusCode, body)
	}
	return &Stream{UnixConn: conn, r: r}, nil
}

// Stream is a connection to a pod, through the network process.
type Stream struct {
	*net.UnixConn
	r *bufio.Reader // holds what came with the answer's head
}

// Read reads what the pod sent.
func (s *Stream) Read(p []byte) (int, error) { return s.r.Read(p) }

// WriteTo copies what the pod sends to w until its end.
func (s *Stream) WriteTo(w io.Writer) (int64, error) { return s.r.WriteTo(w) }
