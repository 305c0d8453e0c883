package tunnel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"bramble.dev/bramble/server/api"
)

// ErrNotConnected is that a node, or for a Dialer the server, has no session now.
var ErrNotConnected = errors.New("not connected")

// How long the streams of a replaced session may go on. Watches never end by
// themselves and are cheap to open again; a copy is not.
const (
	drainControl = 30 * time.Second
	drainBulk    = 10 * time.Minute
)

// Hub is the server's end: it holds the sessions of all nodes. Its methods are
// safe for concurrent use.
type Hub struct {
	log   *slog.Logger
	keep  func(Channel) Keepalive
	mu    sync.Mutex // protects nodes
	nodes map[hubKey]*hubSession
}

type hubKey struct {
	node    string
	channel Channel
}

type hubSession struct {
	*session
	transport *http.Transport
	draining  sync.WaitGroup // while another session takes its place
}

// NewHub returns a Hub without nodes. keep is nil for what fits
// DefaultKeepalive at the nodes.
func NewHub(log *slog.Logger, keep func(Channel) Keepalive) *Hub {
	if keep == nil {
		keep = hubKeepalive
	}
	return &Hub{log: log, keep: keep, nodes: make(map[hubKey]*hubSession)}
}

// Serve reads a new connection's first line and serves handler to the node
// until the connection ends or ctx does. user is the verified identity of the
// connection; one that is no node is refused. A node's new session replaces its
// old one on the same channel, whose streams may finish. Serve closes conn.
func (h *Hub) Serve(ctx context.Context, conn net.Conn, user api.User, handler http.Handler) error {
	defer conn.Close()
	node, ok := user.Node()
	channel, err := h.greet(conn, ok)
	if err != nil {
		return fmt.Errorf("cannot open the tunnel of %s: %w", user.Name, err)
	}
	log := h.log.With("node", node)
	s, err := newSession(api.WithUser(ctx, user), conn, false, channel, h.keep(channel), handler, log)
	if err != nil {
		return err
	}
	own := &hubSession{session: s, transport: streamTransport(s)}
	h.put(hubKey{node, channel}, own)
	log.Debug("tunnel open", "channel", channel, "from", conn.RemoteAddr().String())
	s.run()
	h.drop(hubKey{node, channel}, own)
	own.transport.CloseIdleConnections()
	own.draining.Wait()
	log.Debug("tunnel closed", "channel", channel)
	return nil
}

func (h *Hub) greet(conn net.Conn, isNode bool) (Channel, error) {
	conn.SetDeadline(time.Now().Add(handshakeTimeout))
	defer conn.SetDeadline(time.Time{})
	channel, err := readPreface(conn)
	if err == nil && !isNode {
		err = errors.New("only a node may open a tunnel")
	}
	if err != nil {
		Refuse(conn, err) // best effort: the connection ends anyway
		return "", err
	}
	_, err = io.WriteString(conn, "ok\n")
	return channel, err
}

func (h *Hub) put(key hubKey, s *hubSession) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if old := h.nodes[key]; old != nil {
		old.draining.Go(old.replaced) // ends with the old session, whose Serve waits for it
	}
	h.nodes[key] = s
}

func (h *Hub) drop(key hubKey, s *hubSession) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.nodes[key] == s {
		delete(h.nodes, key)
	}
}

// replaced ends a session once its streams have.
func (s *hubSession) replaced() {
	s.transport.CloseIdleConnections()
	limit := drainBulk
	if s.channel == Control {
		limit = drainControl
	}
	s.drain(limit)
}

// Transport returns what carries HTTP requests to a node over its bulk
// connection; their URLs are http with any host. It serves while that session
// lives: ask again for each request. ErrNotConnected when there is none.
func (h *Hub) Transport(node string) (http.RoundTripper, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.nodes[hubKey{node, Bulk}]
	if s == nil {
		return nil, fmt.Errorf("cannot reach node %s: %w", node, ErrNotConnected)
	}
	return s.transport, nil
}

// Connected reports whether the node has a control session.
func (h *Hub) Connected(node string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.nodes[hubKey{node, Control}] != nil
}

// Disconnect ends a node's sessions at once, for one that was revoked.
func (h *Hub) Disconnect(node string) {
	h.mu.Lock()
	sessions := []*hubSession{h.nodes[hubKey{node, Control}], h.nodes[hubKey{node, Bulk}]}
	h.mu.Unlock()
	for _, s := range sessions {
		if s != nil {
			s.mux.Close()
		}
	}
}

// streamTransport speaks HTTP on streams that it opens in s.
func streamTransport(s *session) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return s.mux.Open()
		},
		DisableCompression:    true,
		MaxIdleConnsPerHost:   4,
		IdleConnTimeout:       idleTimeout / 2, // before the server's end drops it
		ResponseHeaderTimeout: time.Minute,
	}
}
