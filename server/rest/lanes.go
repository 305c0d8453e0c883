package rest

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bramble.dev/bramble/server/api"
)

// Limits bound what one user may have under way; each node is a user of its
// own, so that a flood by one of them delays no lease of another. The zero
// value is DefaultLimits.
type Limits struct {
	InFlight int           // requests being served
	Waiting  int           // requests that wait for that
	Wait     time.Duration // at most, after which it is 429
	Streams  int           // watches, logs and other requests that last
}

// DefaultLimits are far above what a person or a program does that means well.
func DefaultLimits() Limits {
	return Limits{InFlight: 32, Waiting: 256, Wait: 10 * time.Second, Streams: 256}
}

// lanes is a lane for each user who has something under way.
type lanes struct {
	limits Limits

	mu    sync.Mutex // protects byKey and the lanes' counts
	byKey map[string]*lane
}

// lane is one user's, or one address's.
type lane struct {
	turns    chan struct{} // holds one for each request being served
	requests int           // waiting or being served
	streams  int
}

func newLanes(limits Limits) *lanes {
	if limits == (Limits{}) {
		limits = DefaultLimits()
	}
	return &lanes{limits: limits, byKey: map[string]*lane{}}
}

// fairness is the middleware that keeps every user within limits.
func (s *server) fairness(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leave, err := s.lanes.enter(r)
		if err != nil {
			s.writeError(w, r, err)
			return
		}
		if rec, ok := w.(*recorder); ok {
			rec.atEnd(leave) // a request may outlive its handler
		} else {
			defer leave()
		}
		next.ServeHTTP(w, r)
	})
}

// enter waits for the request's turn and returns what ends it.
func (l *lanes) enter(r *http.Request) (leave func(), err error) {
	user, key := laneOf(r)
	if lasts(infoFrom(r.Context())) {
		return l.enterStream(user, key)
	}
	my, err := l.queue(user, key)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(l.limits.Wait)
	defer timer.Stop()
	select {
	case my.turns <- struct{}{}:
		return func() { <-my.turns; l.leave(key, my) }, nil
	case <-r.Context().Done():
		err = r.Context().Err()
	case <-timer.C:
		err = tooMany("%d requests of user %q are under way, and none ended in %v", l.limits.InFlight, user, l.limits.Wait)
	}
	l.leave(key, my)
	return nil, err
}

// laneOf is who makes a request, and the key of the lane. Those who are nobody have one
// for each address: a board can join while another keeps its own lane full.
func laneOf(r *http.Request) (user, key string) {
	u, _ := api.UserFrom(r.Context())
	if u.Name != api.UserAnonymous {
		return u.Name, u.Name
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return u.Name, u.Name
	}
	return u.Name, u.Name + " " + host
}

// lasts reports whether a request may go on for as long as its client likes.
func lasts(in info) bool {
	switch in.Subresource {
	case "log", "proxy", "exec", "attach", "portforward":
		return true
	}
	return in.Verb == "watch"
}

func (l *lanes) queue(user, key string) (*lane, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	my := l.lane(key)
	if my.requests >= l.limits.InFlight+l.limits.Waiting {
		return nil, tooMany("%d requests of user %q are under way and %d wait", l.limits.InFlight, user, l.limits.Waiting)
	}
	my.requests++
	return my, nil
}

func (l *lanes) enterStream(user, key string) (leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	my := l.lane(key)
	if my.streams >= l.limits.Streams {
		return nil, tooMany("user %q has %d watches, logs and other streams open", user, my.streams)
	}
	my.streams++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		my.streams--
		l.drop(key, my)
	}, nil
}

func (l *lanes) leave(key string, my *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	my.requests--
	l.drop(key, my)
}

// lane returns the lane of a key, making it if needed. Caller holds mu.
func (l *lanes) lane(key string) *lane {
	my := l.byKey[key]
	if my == nil {
		my = &lane{turns: make(chan struct{}, l.limits.InFlight)}
		l.byKey[key] = my
	}
	return my
}

// drop forgets a lane in which nothing is under way. Caller holds mu.
func (l *lanes) drop(key string, my *lane) {
	if my.requests == 0 && my.streams == 0 {
		delete(l.byKey, key)
	}
}

// tooMany is a 429, which clients of Kubernetes take as a request to wait.
func tooMany(format string, args ...any) error {
	return apierrors.NewTooManyRequests(fmt.Sprintf(format, args...)+": wait for some to end, or send fewer at a time", 1)
}
