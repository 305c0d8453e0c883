package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// upgradeHeaders are those of a request that its protocol needs. Credentials and
// the client's address are not for the node.
var upgradeHeaders = []string{
	"Upgrade", "X-Stream-Protocol-Version", "Sec-Websocket-Key", "Sec-Websocket-Version", "Sec-Websocket-Protocol",
}

// mayStream holds a WebSocket's GET to what a POST must be allowed: it does as
// much.
func (s *server) mayStream(r *request) error {
	if r.Verb == "create" {
		return nil
	}
	in := infoFrom(r.Context())
	in.Verb = "create"
	return s.mayDo(r.Request, in)
}

// passThrough lets the node answer a request to upgrade, and then passes bytes on
// both ways until either side ends: the protocol is the client's and the node's.
func (s *server) passThrough(w http.ResponseWriter, r *request, name string, node http.RoundTripper, target url.URL) error {
	if !strings.Contains(strings.ToLower(r.Header.Get("Connection")), "upgrade") || r.Header.Get("Upgrade") == "" {
		return badRequest("Upgrade request required")
	}
	target.Scheme, target.Host = "http", nodeHost
	req, err := http.NewRequestWithContext(r.Context(), r.Method, target.String(), nil)
	if err != nil {
		return fmt.Errorf("cannot ask node %s for a stream: %w", name, err)
	}
	req.Header.Set("Connection", "Upgrade")
	for _, header := range upgradeHeaders {
		req.Header[header] = r.Header[header]
	}
	resp, err := node.RoundTrip(req)
	if err != nil {
		return nodeUnreachable(name, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return nodeError(name, resp)
	}
	stream, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		return fmt.Errorf("cannot stream to node %s: its answer takes no data", name)
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return fmt.Errorf("cannot take over the client's connection: %w", err)
	}
	defer client.Close()
	holdLittle(client)
	resp.Header.Set("Audit-Id", requestID(r.Context()))
	head := &http.Response{StatusCode: resp.StatusCode, ProtoMajor: 1, ProtoMinor: 1, Header: resp.Header}
	if err := head.Write(client); err != nil {
		return nil // the client is gone
	}
	stop := context.AfterFunc(r.Context(), func() { client.Close() }) // the server stops
	defer stop()
	s.splice(name, client, buffered.Reader, stream, leftBeat)
	return nil
}

// lingering is how long a client may take to end its side when the node has ended.
const lingering = 5 * time.Second

// splice copies both ways until one has ended. What the client still sends then, as
// a ping, is read and dropped for a while: a TCP connection that is closed over
// unread data is reset, and the client loses the end of what it was sent.
//
// The end of a client that the node takes nothing more from stands behind what it has
// sent, and nobody reads it: it is looked for every beat.
func (s *server) splice(name string, client net.Conn, fromClient io.Reader, node io.ReadWriteCloser, beat time.Duration) {
	var group sync.WaitGroup
	ended := make(chan struct{})
	group.Go(func() {
		if awaitLeft(client, beat, ended) {
			client.Close()
			node.Close()
		}
	})
	group.Go(func() {
		_, _ = pieces(node, fromClient)
		node.Close() // which tells the node that the client is gone
		_, _ = io.Copy(io.Discard, fromClient)
	})
	_, err := pieces(client, node)
	if err != nil && !errors.Is(err, net.ErrClosed) {
		s.cfg.Log.Debug("a stream broke off", "node", name, "err", err)
	}
	node.Close()
	if half, ok := client.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // if that fails, so does reading
	}
	_ = client.SetReadDeadline(time.Now().Add(lingering))
	close(ended)
	group.Wait()
	client.Close()
}

// leftBeat is how often a stream's client is looked at.
const leftBeat = 15 * time.Second

// awaitLeft returns true when the client has closed its side and two beats in a row
// find it so: what it sent last has a beat's time to pass. It returns false once
// ended is closed.
func awaitLeft(client net.Conn, beat time.Duration, ended <-chan struct{}) bool {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for before := false; ; {
		select {
		case <-ended:
			return false
		case <-ticker.C:
		}
		now := hasLeft(client)
		if before && now {
			return true
		}
		before = now
	}
}

// hasLeft reports whether a client's kernel has said that it sends no more.
func hasLeft(client net.Conn) (left bool) {
	tcp := kernels(client)
	if tcp == nil {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false // closed by us
	}
	_ = raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(fds, 0)
		left = err == nil && n == 1
	})
	return left
}

// kernels is the kernel's connection under a client's, nil where there is none.
func kernels(conn net.Conn) *net.TCPConn {
	if over, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = over.NetConn()
	}
	tcp, _ := conn.(*net.TCPConn)
	return tcp
}

// receiveBuffer bounds what the kernel holds of what a client sends. On a thin
// link to the node, a client's pings wait behind it, and kubectl gives up after a
// minute without an answer.
const receiveBuffer = 64 << 10

// holdLittle sets receiveBuffer where there is a connection of the kernel's.
func holdLittle(conn net.Conn) {
	if tcp := kernels(conn); tcp != nil {
		_ = tcp.SetReadBuffer(receiveBuffer) // it is only slower to notice without
	}
}

// streamPiece is small, so that a stream over a thin link does not keep others
// waiting for their turn.
const streamPiece = 32 << 10

// pieces copies by Read and Write alone.
func pieces(w io.Writer, r io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, make([]byte, streamPiece))
}
