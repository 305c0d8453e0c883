package tunnel

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
)

// link is one of a Dialer's two connections.
type link struct {
	d       *Dialer
	channel Channel
	redial  chan struct{} // holds one
	asked   chan struct{} // holds one: the server has no session and wants one
	drain   time.Duration

	mu   sync.Mutex // protects sess and up
	sess *session
	up   chan struct{} // closed while sess is set
}

func newLink(d *Dialer, c Channel) *link {
	l := &link{d: d, channel: c, redial: make(chan struct{}, 1), asked: make(chan struct{}, 1), up: make(chan struct{}), drain: drainBulk}
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
	if l.channel == Bulk {
		l.runAsked(ctx, &group, log)
		return
	}
	failures := 0
	for ctx.Err() == nil {
		s, err := l.start(ctx, ctx, &group)
		if err != nil {
			if failures == 0 && ctx.Err() == nil {
				log.Warn("server out of reach, trying on", "err", err)
			}
			l.wait(ctx, l.d.Backoff.pause(failures))
			failures++
			continue
		}
		began := time.Now()
		if lost := l.hold(ctx, s); lost {
			if failures++; time.Since(began) > l.d.Backoff.Max {
				failures = 0
			}
			log.Info("connection to the server lost")
			l.wait(ctx, l.d.Backoff.pause(failures)-l.d.Backoff.Min/2)
		}
	}
}

// runAsked is run for a connection that is only dialled when it is wanted.
func (l *link) runAsked(ctx context.Context, group *sync.WaitGroup, log *slog.Logger) {
	var s *session
	for l.wanted(ctx, s) {
		next, err := l.tryFor(ctx, group, askLimit)
		if err != nil {
			if ctx.Err() == nil {
				log.Warn("cannot open a connection", "err", err)
			}
			continue
		}
		s = next // who asked meanwhile gets one more: this one may be lost already
	}
}

// wanted waits until a session is asked for, or another in the place of s; false
// when ctx has ended. s may be nil.
func (l *link) wanted(ctx context.Context, s *session) bool {
	for {
		var ended <-chan struct{}
		if s != nil {
			ended = s.mux.CloseChan()
		}
		select {
		case <-ctx.Done():
			return false
		case <-l.asked: // also while s seems up: the server has lost or retired it
			return true
		case <-l.redial:
			if s != nil && !s.mux.IsClosed() {
				return true
			}
		case <-ended:
			l.forget(s)
			s = nil
		}
	}
}

// tryFor dials with back-off until there is a session or limit is over.
func (l *link) tryFor(ctx context.Context, group *sync.WaitGroup, limit time.Duration) (*session, error) {
	trying, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	end, _ := trying.Deadline()
	for failures := 0; ; failures++ {
		s, err := l.start(ctx, trying, group)
		if err == nil {
			return s, nil
		}
		pause := l.d.Backoff.pause(failures)
		if time.Until(end) < pause || ctx.Err() != nil {
			return nil, err
		}
		l.wait(ctx, pause)
	}
}

// start dials a new session, at most until dialling ends, runs it in group until ctx
// does and puts it in the place of the one at hand, which is drained.
func (l *link) start(ctx, dialling context.Context, group *sync.WaitGroup) (*session, error) {
	s, err := l.dial(ctx, dialling)
	if err != nil {
		if l.d.OnError != nil && ctx.Err() == nil {
			l.d.OnError(l.channel, err)
		}
		return nil, err
	}
	group.Go(s.run)
	if old := l.swap(s); old != nil {
		group.Go(func() { old.drain(l.drain) })
	}
	l.d.Log.Debug("tunnel open", "channel", l.channel, "server", s.mux.RemoteAddr().String())
	if l.d.OnConnect != nil {
		l.d.OnConnect(l.channel)
	}
	return s, nil
}

func (l *link) dial(ctx, dialling context.Context) (*session, error) {
	conn, err := l.d.connect(dialling, l.channel)
	if err != nil {
		return nil, err
	}
	s, err := newSession(ctx, conn, true, l.channel, l.d.Keepalive(l.channel), l.d.handler(l.channel), l.d.Log)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return s, nil
}

// ask has a session dialled. It does not wait.
func (l *link) ask() {
	select {
	case l.asked <- struct{}{}:
	default: // it is asked for already
	}
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
