package tunnel

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
)

// link keeps one of a Dialer's two connections.
type link struct {
	d       *Dialer
	channel Channel
	redial  chan struct{}
	drain   time.Duration

	mu   sync.Mutex // protects sess and up
	sess *session
	up   chan struct{} // closed while sess is set
}

func newLink(d *Dialer, c Channel) *link {
	l := &link{d: d, channel: c, redial: make(chan struct{}, 1), up: make(chan struct{}), drain: drainBulk}
	if c == Control {
		l.drain = drainControl
	}
	return l
}

// run dials and serves until ctx ends. While a redial fails, the session at
// hand goes on.
func (l *link) run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	log := l.d.Log.With("channel", l.channel)
	failures := 0
	for ctx.Err() == nil {
		next, err := l.start(ctx, &group)
		if err != nil {
			if failures == 0 && ctx.Err() == nil {
				log.Warn("server out of reach, trying on", "err", err)
			}
			if l.d.OnError != nil && ctx.Err() == nil {
				l.d.OnError(l.channel, err)
			}
			l.wait(ctx, l.d.Backoff.pause(failures))
			failures++
			continue
		}
		old := l.swap(next)
		if old != nil {
			group.Go(func() { old.drain(l.drain) })
		}
		log.Debug("tunnel open", "server", next.mux.RemoteAddr().String())
		if l.d.OnConnect != nil {
			l.d.OnConnect(l.channel)
		}
		began := time.Now()
		if lost := l.hold(ctx, next); lost {
			if failures++; time.Since(began) > l.d.Backoff.Max {
				failures = 0
			}
			log.Info("connection to the server lost")
			l.wait(ctx, l.d.Backoff.pause(failures)-l.d.Backoff.Min/2)
		}
	}
}

// start dials a new session and runs it in group.
func (l *link) start(ctx context.Context, group *sync.WaitGroup) (*session, error) {
	conn, err := l.d.connect(ctx, l.channel)
	if err != nil {
		return nil, err
	}
	s, err := newSession(ctx, conn, true, l.channel, l.d.Keepalive(l.channel), l.d.Handler, l.d.Log)
	if err != nil {
		conn.Close()
		return nil, err
	}
	group.Go(s.run)
	return s, nil
}

// hold waits until s has ended (true) or a new session is wanted (false).
func (l *link) hold(ctx context.Context, s *session) (lost bool) {
	select {
	case <-s.mux.CloseChan():
	case <-ctx.Done():
	case <-l.redial:
		return false
	}
	l.forget(s)
	return ctx.Err() == nil
}

func (l *link) wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (l *link) swap(next *session) (old *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old, l.sess = l.sess, next
	if old == nil {
		close(l.up)
	}
	return old
}

func (l *link) forget(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sess == s {
		l.sess, l.up = nil, make(chan struct{})
	}
}

func (l *link) current() *session {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sess == nil || l.sess.mux.IsClosed() {
		return nil
	}
	return l.sess
}

// open opens a stream in the session, waiting at most limit for one.
func (l *link) open(ctx context.Context, limit time.Duration) (net.Conn, error) {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for {
		l.mu.Lock()
		s, up := l.sess, l.up
		l.mu.Unlock()
		if s != nil {
			conn, err := s.mux.Open()
			if err == nil {
				return conn, nil
			}
			l.forget(s)
			if !errors.Is(err, yamux.ErrRemoteGoAway) {
				s.mux.Close() // run dials anew
			}
			continue
		}
		select {
		case <-up:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-deadline.C:
			return nil, ErrNotConnected
		}
	}
}
