package tunnel

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// ErrNoBulk is that a node opened no bulk connection when it was asked for one.
var ErrNoBulk = errors.New("the node is connected, but opened no bulk connection in time")

// askPath is where a node is asked, by POST over control, to dial its bulk
// connection. It belongs to this package, whatever the node's handler serves.
const askPath = "/tunnel/bulk"

const (
	askLimit = handshakeTimeout + 5*time.Second // for how long a node tries, and the hub waits
	bulkIdle = 5 * time.Minute
)

// asking is one request to a node for its bulk connection, for all who wait for it.
type asking struct {
	done    chan struct{} // closed when session or err is set
	session *hubSession
	err     error
	limit   *time.Timer
	control *hubSession // over which the node was asked last
}

// Transport returns what carries HTTP requests to a node over its bulk
// connection; their URLs are http with any host. It serves while that session
// lives: ask again for each request. Where there is no session the node is asked for
// one, which is waited for until ctx ends, at most h.Wait: then it is ErrNoBulk.
// ErrNotConnected when the node has no control session.
func (h *Hub) Transport(ctx context.Context, node string) (http.RoundTripper, error) {
	s, a := h.find(node)
	if s == nil && a != nil {
		select {
		case <-a.done:
			if a.err != nil {
				return nil, a.err
			}
			s = a.session
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if s == nil {
		return nil, ErrNotConnected
	}
	return s.transport, nil
}

// find returns a node's bulk session or, when there is none, the asking for it,
// which it begins unless it is under way; neither without a control session.
func (h *Hub) find(node string) (*hubSession, *asking) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.nodes[hubKey{node, Bulk}]; s != nil && !s.mux.IsClosed() {
		s.used = time.Now()
		return s, nil
	}
	if a := h.asking[node]; a != nil {
		return nil, a
	}
	control := h.nodes[hubKey{node, Control}]
	if control == nil {
		return nil, nil
	}
	a := &asking{done: make(chan struct{})}
	a.limit = time.AfterFunc(h.Wait, func() { h.giveUp(node, a, nil, ErrNoBulk) })
	h.asking[node] = a
	h.ask(node, a, control)
	return nil, a
}

// ask asks the node over control, for a. It is called with h.mu held, and control in
// the map: a new session asks again, since what went over the one before it may be lost.
func (h *Hub) ask(node string, a *asking, control *hubSession) {
	a.control = control
	control.work.Go(func() { // ends with control
		if err := control.askForBulk(); err != nil {
			h.giveUp(node, a, control, err)
		}
	})
}

// askForBulk tells the node to dial; it does not wait until it has.
func (s *hubSession) askForBulk() error {
	req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, "http://node"+askPath, nil)
	if err != nil {
		return err
	}
	req.Close = true // no stream stays behind
	resp, err := s.transport.RoundTrip(req)
	if err != nil && s.mux.IsClosed() {
		return ErrNotConnected
	}
	if err != nil {
		return fmt.Errorf("cannot ask for its bulk connection: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		return fmt.Errorf("cannot ask for its bulk connection: the node answers %s", resp.Status)
	}
	return nil
}

// giveUp ends a, unless it was answered, or err comes of a session (nil: of none)
// after which the node was asked over another.
func (h *Hub) giveUp(node string, a *asking, over *hubSession, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asking[node] == a && (over == nil || over == a.control) {
		h.answer(node, nil, err)
	}
}

// answer hands s or err to all who wait for a node's bulk session. It is called with
// h.mu held.
func (h *Hub) answer(node string, s *hubSession, err error) {
	a := h.asking[node]
	if a == nil {
		return
	}
	delete(h.asking, node)
	a.limit.Stop()
	a.session, a.err = s, err
	close(a.done)
}

// use notes that somebody had to do with s.
func (h *Hub) use(s *hubSession) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.used = time.Now()
}

// retire ends a bulk session that was not used for h.Idle, and otherwise sees to it
// that it is looked at again. From the map it is taken first: nobody gets a session
// that ends.
func (h *Hub) retire(key hubKey, s *hubSession) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.nodes[key] != s {
		return // replaced or lost
	}
	left := h.Idle - time.Since(s.used)
	if s.mux.NumStreams() > 0 {
		left = h.Idle
	}
	if left > 0 {
		s.idle.Reset(left)
		return
	}
	delete(h.nodes, key)
	s.work.Go(s.replaced)
}

// handler is what the server's requests on c get. Those on control can ask for bulk.
func (d *Dialer) handler(c Channel) http.Handler {
	if c != Control {
		return d.Handler
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != askPath:
			d.Handler.ServeHTTP(w, r)
		case r.Method != http.MethodPost:
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "the bulk connection is asked for by POST", http.StatusMethodNotAllowed)
		default:
			d.links[1].ask()
			w.WriteHeader(http.StatusAccepted)
		}
	})
}
