// Package tunnel carries everything between a node and the server over two TLS
// connections that the node dials: control, which is always up, for what must never
// wait, and bulk, for what may be large, which the hub asks for over control when it
// is needed and ends when nobody uses it. A connection opens with a line that says
// which it is; then yamux multiplexes streams in both directions, with HTTP/1.1 on
// each.
//
// The agent runs a Dialer, the server a Hub. Who the node is comes from the
// connection's client certificate, which package server has verified; it stands
// in the context of each request (api.UserFrom).
//
// Memory: a stream buffers at most 256 KiB that its reader has not taken, a
// session serves at most 128 streams at once and holds 64 that wait.
package tunnel

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"

	"bramble.dev/bramble/server/api"
)

const (
	streamWindow     = 256 << 10
	acceptBacklog    = 64
	maxStreams       = 128
	handshakeTimeout = 10 * time.Second
	headerTimeout    = 10 * time.Second
	idleTimeout      = 2 * time.Minute
	maxHeaderBytes   = 64 << 10
)

// Keepalive is how soon a dead peer is found. A session that heard nothing for
// Interval pings and ends when no answer comes within Timeout; one that hears
// something anyway sends nothing. Timeout also bounds how long a write may wait
// for its turn.
type Keepalive struct{ Interval, Timeout time.Duration }

// DefaultKeepalive is the Keepalive of a channel, at the node's end. On control
// the node's heartbeats, each 10 s, leave nothing to ping for. The bulk one is
// slack: on a thin link an answer waits behind the copy. Its pings are for quiet
// streams: without any it is soon retired (Hub.Idle).
func DefaultKeepalive(c Channel) Keepalive {
	if c == Control {
		return Keepalive{Interval: 12 * time.Second, Timeout: 10 * time.Second}
	}
	return Keepalive{Interval: 4 * time.Minute, Timeout: 30 * time.Second}
}

// hubKeepalive is DefaultKeepalive at the server's end, which hears the node's
// pings before it would send its own.
func hubKeepalive(c Channel) Keepalive {
	if c == Control {
		return Keepalive{Interval: 25 * time.Second, Timeout: 10 * time.Second}
	}
	return Keepalive{Interval: 5 * time.Minute, Timeout: 30 * time.Second}
}

// session is one yamux session over one connection, with HTTP served on the
// streams that the peer opens.
type session struct {
	channel  Channel
	mux      *yamux.Session
	heard    *heardConn
	listener *streamListener
	http     *http.Server
	keep     Keepalive
	log      *slog.Logger
	ctx      context.Context // that of the requests; cancelled at the session's end
	cancel   context.CancelFunc
	done     chan struct{} // closed when run has returned
	seen     uint64        // of heard.bytes, at the last look
}

// newSession starts yamux on conn; run must follow. The session ends with ctx,
// which requests inherit.
func newSession(ctx context.Context, conn net.Conn, dialled bool, c Channel, keep Keepalive, h http.Handler, log *slog.Logger) (*session, error) {
	if c == Bulk {
		queueLittle(conn)
	}
	heard := &heardConn{Conn: conn}
	logger := slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	config := &yamux.Config{
		AcceptBacklog:          acceptBacklog,
		KeepAliveInterval:      keep.Interval, // must be set, though the keepalive is ours
		ConnectionWriteTimeout: keep.Timeout,
		MaxStreamWindowSize:    streamWindow,
		StreamOpenTimeout:      75 * time.Second,
		StreamCloseTimeout:     time.Minute,
		Logger:                 logger,
	}
	start := yamux.Server
	if dialled {
		start = yamux.Client
	}
	mux, err := start(heard, config)
	if err != nil {
		return nil, fmt.Errorf("cannot start a session: %w", err)
	}
	s := &session{channel: c, mux: mux, heard: heard, keep: keep, log: log, done: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.listener = &streamListener{mux: mux, log: log}
	s.http = &http.Server{
		Handler:           h,
		BaseContext:       func(net.Listener) context.Context { return api.WithSession(s.ctx) },
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          logger,
		TLSNextProto:      map[string]func(*http.Server, *tls.Conn, http.Handler){}, // no HTTP/2, nor its tables
	}
	return s, nil
}

// run serves the session until the connection ends, it is closed, or its
// context ends, and returns when all its handlers have. A session that rests
// holds as few goroutines as can be: a server has one for each node, or two.
func (s *session) run() {
	defer close(s.done)
	ended := context.AfterFunc(s.ctx, func() { s.mux.Close() })
	rest := s.keepAlive()
	s.http.Serve(s.listener) // always an error: the session's end
	s.cancel()
	if !ended() {
		s.mux.Close() // waits for the one under way
	}
	rest()
	s.listener.streams.Wait()
}

// keepAlive looks at each interval whether the peer is there, until stop is
// called, which waits for a look under way: the session has to be closed.
func (s *session) keepAlive() (stop func()) {
	var mu sync.Mutex // held during a look; protects timer and ended
	var timer *time.Timer
	ended := false
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(s.keep.Interval, func() {
		mu.Lock()
		defer mu.Unlock()
		if !ended && s.look() {
			timer.Reset(s.keep.Interval)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		ended = true
		timer.Stop()
	}
}

// look pings a peer that was silent since the last look, and ends the session
// when it is silent for too long.
func (s *session) look() (alive bool) {
	if now := s.heard.bytes.Load(); now != s.seen {
		s.seen = now
		return !s.mux.IsClosed()
	}
	alive = s.probe()
	s.seen = s.heard.bytes.Load()
	return alive
}

// probe pings the peer, and ends the session when nothing at all comes within the
// keepalive's timeout.
func (s *session) probe() (alive bool) {
	before := s.heard.bytes.Load()
	_, err := s.mux.Ping()
	if err == nil || s.heard.bytes.Load() != before && !s.mux.IsClosed() {
		return true
	}
	if !s.mux.IsClosed() {
		s.log.Warn("tunnel peer does not answer", "channel", s.channel, "err", err)
	}
	s.mux.Close()
	return false
}

// drain lets the streams of a replaced session finish, then closes it, at the
// latest after limit.
func (s *session) drain(limit time.Duration) {
	s.http.SetKeepAlivesEnabled(false)
	s.mux.GoAway()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for s.mux.NumStreams() > 0 {
		select {
		case <-s.done:
			return
		case <-deadline.C:
		case <-tick.C:
			continue
		}
		break
	}
	s.mux.Close()
	<-s.done
}

// heardConn counts what was read, and sends a frame of yamux at once that comes
// as two writes, header and body: as one TLS record in one segment.
type heardConn struct {
	net.Conn
	bytes atomic.Uint64

	frame []byte // a header that waits for its body; yamux writes from one goroutine
}

// What a header of yamux looks like (its specification, "Framing").
const (
	headerBytes = 12
	typeAt      = 1 // 0: data
	lengthAt    = 8 // of the body, big endian
	together    = 4 << 10
)

func (c *heardConn) Write(p []byte) (int, error) {
	if len(c.frame) == 0 {
		if len(p) != headerBytes || p[typeAt] != 0 || binary.BigEndian.Uint32(p[lengthAt:]) == 0 {
			return c.Conn.Write(p)
		}
		c.frame = append(c.frame, p...) // data with a body, which is written next
		return len(p), nil
	}
	if len(p) > together { // not worth the copy, or the memory
		_, err := c.Conn.Write(c.frame)
		c.frame = c.frame[:0]
		if err != nil {
			return 0, err
		}
		return c.Conn.Write(p)
	}
	c.frame = append(c.frame, p...)
	_, err := c.Conn.Write(c.frame)
	c.frame = nil // kept, it would be as large as the largest was
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

func (c *heardConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.Add(uint64(n))
	return n, err
}

// streamListener accepts a session's streams, up to maxStreams at a time; what
// exceeds that is closed unread.
type streamListener struct {
	mux     *yamux.Session
	log     *slog.Logger
	streams sync.WaitGroup
	open    atomic.Int32
}

func (l *streamListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.mux.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= maxStreams {
			l.streams.Add(1)
			return &watchedConn{Conn: conn, closed: func() {
				l.open.Add(-1)
				l.streams.Done()
			}}, nil
		}
		l.open.Add(-1)
		l.log.Warn("tunnel stream refused", "limit", maxStreams)
		conn.Close()
	}
}

func (l *streamListener) Close() error   { return l.mux.Close() }
func (l *streamListener) Addr() net.Addr { return l.mux.Addr() }

// watchedConn is a stream that says once when it was closed.
type watchedConn struct {
	net.Conn
	closed func()
	once   sync.Once
}

func (c *watchedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.closed)
	return err
}

// Shrink gives back the buffer of what was read, for a stream that rests.
func (c *watchedConn) Shrink() {
	if s, ok := c.Conn.(*yamux.Stream); ok {
		s.Shrink()
	}
}
