package tunnel

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"sync"
	"testing"
)

// AskPath is where a node is asked for its bulk connection.
const AskPath = askPath

// AskLimit is for how long a node tries to open the bulk connection.
const AskLimit = askLimit

// TryBulk is what a node does that is asked for bulk, without the session's work.
func (d *Dialer) TryBulk(ctx context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	_, err := d.links[1].tryFor(ctx, &group, askLimit)
	return err
}

// HasBulk reports whether a node's bulk session is one that requests get.
func (h *Hub) HasBulk(node string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.nodes[hubKey{node, Bulk}]
	return s != nil && !s.mux.IsClosed()
}

// Control is what carries requests over a node's control session.
func (h *Hub) Control(node string) http.RoundTripper {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.nodes[hubKey{node, Control}].transport
}

// ServeControl serves h on a new control connection until t ends.
func ServeControl(t *testing.T, conn *tls.Conn, h http.Handler) {
	t.Helper()
	if err := greetServer(conn, Control); err != nil {
		t.Fatal(err)
	}
	s, err := newSession(t.Context(), conn, true, Control, DefaultKeepalive(Control), h, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	go s.run()
	t.Cleanup(func() { <-s.done }) // t's context ends first
}
