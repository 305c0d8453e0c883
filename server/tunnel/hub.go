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
// safe for concurrent use. Its fields may be changed before the first Serve; NewHub
// sets defaults.
type Hub struct {
	Wait time.Duration // how long Transport waits for a bulk session
	Idle time.Duration // how long a bulk session without streams is kept

	log    *slog.Logger
	keep   func(Channel) Keepalive
	mu     sync.Mutex // protects nodes and asking, and of a hubSession used and idle
	nodes  map[hubKey]*hubSession
	asking map[string]*asking // by node: who waits for a bulk session
}

type hubKey struct {
	node    string
	channel Channel
}

type hubSession struct {
	*session
	transport *http.Transport
	work      sync.WaitGroup // what Serve waits for: draining, and on control asking for bulk

	used time.Time   // bulk: when last asked for, or left by a stream; Hub.mu protects it
	idle *time.Timer // bulk: of the next look whether it is used; Hub.mu protects it
}

// NewHub returns a Hub without nodes. keep is nil for what fits
// DefaultKeepalive at the nodes.
func NewHub(log *slog.Logger, keep func(Channel) Keepalive) *Hub {
	if keep == nil {
		keep = hubKeepalive
	}
	return &Hub{Wait: askLimit, Idle: bulkIdle, log: log, keep: keep, nodes: make(map[hubKey]*hubSession), asking: make(map[string]*asking)}
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
	own := &hubSession{session: s}
	own.transport = h.streamTransport(own)
	h.put(hubKey{node, channel}, own)
	log.Debug("tunnel open", "channel", channel, "from", conn.RemoteAddr().String())
	s.run()
	h.drop(hubKey{node, channel}, own)
	own.transport.CloseIdleConnections()
	own.work.Wait()
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
		old.work.Go(old.replaced) // ends with the old session, whose Serve waits for it
	}
	h.nodes[key] = s
	if key.channel == Bulk {
		s.used = time.Now()
		s.idle = time.AfterFunc(h.Idle, func() { h.retire(key, s) })
		h.answer(key.node, s, nil)
		return
	}
	h.setAside(key.node)
	if a := h.asking[key.node]; a != nil {
		h.ask(key.node, a, s)
	}
}

func (h *Hub) drop(key hubKey, s *hubSession) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.idle != nil {
		s.idle.Stop()
	}
	if h.nodes[key] != s {
		return
	}
	delete(h.nodes, key)
	if key.channel == Control {
		h.setAside(key.node)
		h.answer(key.node, nil, ErrNotConnected)
	}
}

// setAside takes a node's bulk session from the map because the control session beside
// it is lost or replaced: what became of one path mostly became of the other, too, but
// bulk's keepalive is slow to notice. Who asks for bulk gets a new one; the streams of
// the old go on if the node answers. It is called with h.mu held.
func (h *Hub) setAside(node string) {
	key := hubKey{node, Bulk}
	s := h.nodes[key]
	if s == nil {
		return
	}
	delete(h.nodes, key)
	s.work.Go(func() {
		if s.probe() {
			s.replaced()
		}
	})
}

// replaced ends a session that nobody finds any more, once its streams have ended.
func (s *hubSession) replaced() {
	s.transport.CloseIdleConnections()
	limit := drainBulk
	if s.channel == Control {
		limit = drainControl
	}
	s.drain(limit)
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
func (h *Hub) streamTransport(s *hubSession) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			stream, err := s.mux.Open()
			if err != nil {
				return nil, err
			}
			if s.channel == Control {
				return stream, nil
			}
			return &watchedConn{Conn: stream, closed: func() { h.use(s) }}, nil
		},
		DisableCompression:    true,
		MaxIdleConnsPerHost:   4,
		IdleConnTimeout:       min(idleTimeout/2, h.Idle), // before the node's end drops it
		ResponseHeaderTimeout: time.Minute,
	}
}
