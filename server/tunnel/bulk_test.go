package tunnel_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bramble.dev/bramble/server/tunnel"
)

// counter counts a node's connections by channel.
type counter struct{ control, bulk atomic.Int32 }

func (c *counter) count(d *tunnel.Dialer) {
	d.OnConnect = func(channel tunnel.Channel) {
		if channel == tunnel.Bulk {
			c.bulk.Add(1)
		} else {
			c.control.Add(1)
		}
	}
}

// passed waits for a time to be over in which something must not happen.
func passed(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

func TestBulkIsDialledOnceWhenItIsAskedFor(t *testing.T) {
	ca := newAuthority(t)
	s := listen(t, ca, loopback, nil, http.HandlerFunc(whoami))
	var n counter
	node(t, ca, "kitchen", []string{s.address}, http.HandlerFunc(whoami), n.count)
	eventually(t, "connected", func() bool { return s.hub.Connected("kitchen") && n.control.Load() == 1 })
	passed(t, 100*time.Millisecond)
	if n.bulk.Load() != 0 || s.hub.HasBulk("kitchen") {
		t.Fatal("bulk was dialled before anybody asked for it")
	}
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			rt, err := s.hub.Transport(t.Context(), "kitchen")
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := get(t, &http.Client{Transport: rt}, "http://node/logs"); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	s.bulk(t, "kitchen")
	passed(t, 100*time.Millisecond)
	if got := n.bulk.Load(); got != 1 {
		t.Errorf("bulk was dialled %d times, want once", got)
	}
}

// gate counts how often the node is asked for bulk, and lets no bulk connection
// through until it is opened.
type gate struct {
	opened chan struct{}
	tried  chan struct{} // one for each address dialled meanwhile, up to its room
	shut   atomic.Bool
}

func newGate() *gate { return &gate{opened: make(chan struct{}), tried: make(chan struct{}, 64)} }

func (g *gate) adjust(d *tunnel.Dialer) {
	dial := d.Dial
	d.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if g.shut.Load() {
			select {
			case g.tried <- struct{}{}:
			default:
			}
			select {
			case <-g.opened:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return dial(ctx, network, address)
	}
}

func TestCallersWhoWaitAskOnce(t *testing.T) {
	ca := newAuthority(t)
	s := listen(t, ca, loopback, nil, http.HandlerFunc(whoami))
	g := newGate()
	var n counter
	d := node(t, ca, "kitchen", []string{s.address}, http.HandlerFunc(whoami), func(d *tunnel.Dialer) {
		g.adjust(d)
		n.count(d)
	})
	eventually(t, "connected", func() bool { return d.Connected() && s.hub.Connected("kitchen") })
	g.shut.Store(true)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := s.hub.Transport(ctx, "kitchen")
		left <- err
	}()
	<-g.tried
	var group sync.WaitGroup
	var got atomic.Int32
	for range 20 {
		group.Go(func() {
			if _, err := s.hub.Transport(t.Context(), "kitchen"); err != nil {
				t.Error(err)
			}
			got.Add(1)
		})
	}
	passed(t, 50*time.Millisecond)
	leave() // who asked first; the others get what it asked for
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("a caller who left got %v", err)
	}
	passed(t, 50*time.Millisecond)
	if got.Load() != 0 {
		t.Fatal("a transport came before the connection")
	}
	close(g.opened)
	group.Wait()
	passed(t, 100*time.Millisecond)
	if n.bulk.Load() != 1 || len(g.tried) != 0 {
		t.Errorf("bulk came up %d times, after %d dials more than one", n.bulk.Load(), len(g.tried))
	}
}

func TestNodeIsAskedOnceForAllWhoWait(t *testing.T) {
	ca := newAuthority(t)
	s := listen(t, ca, loopback, nil, http.HandlerFunc(whoami))
	var asked atomic.Int32
	s.nodeThat(t, ca, "kitchen", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusAccepted)
	}))
	ctx, leave := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if _, err := s.hub.Transport(ctx, "kitchen"); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
	}
	eventually(t, "asked", func() bool { return asked.Load() > 0 })
	passed(t, 100*time.Millisecond)
	leave()
	group.Wait()
	if got := asked.Load(); got != 1 {
		t.Errorf("the node was asked %d times, want once", got)
	}
}

// TestControlIsReplacedWhileBulkIsWaitedFor loses what was asked with the session
// over which it was.
func TestControlIsReplacedWhileBulkIsWaitedFor(t *testing.T) {
	ca := newAuthority(t)
	s := listen(t, ca, loopback, nil, http.HandlerFunc(whoami), func(h *tunnel.Hub) { h.Wait = time.Hour })
	asked := make(chan struct{})
	s.nodeThat(t, ca, "kitchen", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}))
	got := make(chan error, 1)
	go func() {
		_, err := s.hub.Transport(t.Context(), "kitchen")
		got <- err
	}()
	<-asked
	node(t, ca, "kitchen", []string{s.address}, http.HandlerFunc(whoami), nil)
	select {
	case err := <-got:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the new session was not asked")
	}
}

// TestAskedWhileBulkComesUp asks at a moment at which the session that is coming up
// may be lost again.
func TestAskedWhileBulkComesUp(t *testing.T) {
	ca := newAuthority(t)
	s := listen(t, ca, loopback, nil, http.HandlerFunc(whoami))
	var bulk atomic.Int32
	ask := func() {
		resp, err := (&http.Client{Transport: s.hub.Control("kitchen")}).Post("http://node"+tunnel.AskPath, "", nil)
		if err != nil {
			t.Error(err)
			return
		}
		resp.Body.Close()
	}
	node(t, ca, "kitchen", []string{s.address}, nil, func(d *tunnel.Dialer) {
		d.OnConnect = func(c tunnel.Channel) {
			if c == tunnel.Bulk && bulk.Add(1) == 1 {
				ask()
			}
		}
	})
	s.bulk(t, "kitchen")
	eventually(t, "dialled for the second time", func() bool { return bulk.Load() == 2 })
}

// TestLimitBoundsARoundOverManyAddresses has addresses that never answer, as those of
// networks in which the node is not.
func TestLimitBoundsARoundOverManyAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		addresses := []string{"10.0.0.1:6443", "10.0.0.2:6443", "10.0.0.3:6443", "10.0.0.4:6443"}
		d := tunnel.NewDialer(func() []string { return addresses }, func() (*tls.Config, error) { return new(tls.Config), nil }, nil, quiet())
		d.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		began := time.Now()
		err := d.TryBulk(t.Context())
		if took := time.Since(began); err == nil || took > tunnel.AskLimit {
			t.Errorf("tried for %v (%v), at most %v are allowed", took, err, tunnel.AskLimit)
		}
	})
}

func TestIdleBulkIsRetiredAndDialledAgain(t *testing.T) {
	ca := newAuthority(t)
	s := listen(t, ca, loopback, nil, http.HandlerFunc(whoami), func(h *tunnel.Hub) { h.Idle = time.Second })
	var n counter
	d := node(t, ca, "kitchen", []string{s.address}, http.HandlerFunc(whoami), n.count)
	for round := range int32(2) {
		if _, err := get(t, &http.Client{Transport: s.bulk(t, "kitchen")}, "http://node/logs"); err != nil {
			t.Fatal(err)
		}
		if got := n.bulk.Load(); got != round+1 {
			t.Fatalf("bulk came up %d times, want %d", got, round+1)
		}
		eventually(t, "retired", func() bool { return !s.hub.HasBulk("kitchen") })
	}
	passed(t, 100*time.Millisecond)
	if n.bulk.Load() != 2 || n.control.Load() != 1 || !d.Connected() {
		t.Errorf("bulk came up %d times, control %d times, which is up: %v", n.bulk.Load(), n.control.Load(), d.Connected())
	}
}

func TestAskingKeepsBulk(t *testing.T) {
	ca := newAuthority(t)
	const idle = 2 * time.Second
	s := listen(t, ca, loopback, nil, http.HandlerFunc(whoami), func(h *tunnel.Hub) { h.Idle = idle })
	var n counter
	node(t, ca, "kitchen", []string{s.address}, http.HandlerFunc(whoami), n.count)
	s.bulk(t, "kitchen")
	for began := time.Now(); time.Since(began) < 3*idle/2; {
		passed(t, idle/50)
		s.bulk(t, "kitchen")
	}
	if got := n.bulk.Load(); got != 1 {
		t.Errorf("bulk came up %d times while it was asked for all the time", got)
	}
}

// begin asks the kitchen for url over bulk and returns what begins to come.
func (s *server) begin(t *testing.T, url string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.bulk(t, "kitchen").RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func TestLongStreamKeepsBulk(t *testing.T) {
	ca := newAuthority(t)
	const idle = time.Second
	s := listen(t, ca, loopback, nil, http.HandlerFunc(whoami), func(h *tunnel.Hub) { h.Idle = idle })
	more := make(chan string)
	var n counter
	node(t, ca, "kitchen", []string{s.address}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).Flush()
		io.WriteString(w, <-more)
	}), n.count)
	resp := s.begin(t, "http://node/logs")
	defer resp.Body.Close()
	passed(t, 5*idle/2)
	if !s.hub.HasBulk("kitchen") {
		t.Error("bulk was retired with a stream in it")
	}
	more <- "the end"
	if body, err := io.ReadAll(resp.Body); string(body) != "the end" || err != nil {
		t.Errorf("the stream ended with %q, %v", body, err)
	}
	if got := n.bulk.Load(); got != 1 {
		t.Errorf("bulk came up %d times", got)
	}
	eventually(t, "retired after the stream", func() bool { return !s.hub.HasBulk("kitchen") })
}

func TestControlIsLostWhileBulkIsWaitedFor(t *testing.T) {
	ca := newAuthority(t)
	s := listen(t, ca, loopback, nil, http.HandlerFunc(whoami), func(h *tunnel.Hub) { h.Wait = time.Hour })
	g := newGate()
	d := node(t, ca, "kitchen", []string{s.address}, nil, g.adjust)
	eventually(t, "connected", func() bool { return d.Connected() && s.hub.Connected("kitchen") })
	g.shut.Store(true)
	got := make(chan error, 1)
	go func() {
		_, err := s.hub.Transport(t.Context(), "kitchen")
		got <- err
	}()
	<-g.tried
	passed(t, 50*time.Millisecond) // the node's answer is heard, too
	s.hub.Disconnect("kitchen")
	select {
	case err := <-got:
		if !errors.Is(err, tunnel.ErrNotConnected) {
			t.Errorf("got %v, want ErrNotConnected", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("nobody was told that control is gone")
	}
	close(g.opened)
	eventually(t, "reached again", func() bool {
		_, err := s.hub.Transport(t.Context(), "kitchen")
		return err == nil
	})
}

// TestBulkIsLostWithControl has a path that swallows everything, which only control's
// keepalive finds soon.
func TestBulkIsLostWithControl(t *testing.T) {
	ca := newAuthority(t)
	keep := func(c tunnel.Channel) tunnel.Keepalive {
		if c == tunnel.Bulk {
			return tunnel.Keepalive{Interval: time.Hour, Timeout: time.Second}
		}
		return tunnel.Keepalive{Interval: 50 * time.Millisecond, Timeout: time.Second}
	}
	s := listen(t, ca, loopback, keep, http.HandlerFunc(whoami))
	f := forward(t, s.address)
	d := node(t, ca, "kitchen", []string{f.address}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).Flush()
		if r.URL.Path == "/follow" {
			<-r.Context().Done()
		}
	}), func(d *tunnel.Dialer) { d.Keepalive = keep })
	eventually(t, "connected", d.Connected)
	resp := s.begin(t, "http://node/follow")
	defer resp.Body.Close()
	told := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, resp.Body)
		told <- err
	}()
	f.dropAll()
	eventually(t, "the loss noticed", func() bool { return !s.hub.HasBulk("kitchen") })
	select {
	case err := <-told:
		if err == nil {
			t.Error("a stream that was lost ended as if it were whole")
		}
	case <-time.After(10 * time.Second):
		t.Error("who followed a stream was not told of its loss")
	}
	if _, err := get(t, &http.Client{Transport: s.bulk(t, "kitchen")}, "http://node/logs"); err != nil {
		t.Errorf("over the new connections: %v", err)
	}
}

func TestBulkThatCannotBeDialled(t *testing.T) {
	ca := newAuthority(t)
	s := listen(t, ca, loopback, nil, http.HandlerFunc(whoami), func(h *tunnel.Hub) { h.Wait = 300 * time.Millisecond })
	refused := make(chan error, 64)
	d := node(t, ca, "kitchen", []string{s.address}, http.HandlerFunc(whoami), func(d *tunnel.Dialer) {
		d.OnError = func(c tunnel.Channel, err error) {
			if c == tunnel.Bulk {
				select {
				case refused <- err:
				default:
				}
			}
		}
	})
	eventually(t, "connected", func() bool { return d.Connected() && s.hub.Connected("kitchen") })
	s.refusing.Store(true)
	began := time.Now()
	if _, err := s.hub.Transport(t.Context(), "kitchen"); !errors.Is(err, tunnel.ErrNoBulk) {
		t.Errorf("got %v, want ErrNoBulk", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the error took %v", took)
	}
	if e := new(tunnel.RefusedError); !errors.As(<-refused, &e) {
		t.Errorf("OnError got no refusal")
	}
	s.refusing.Store(false)
	eventually(t, "the node tries on", func() bool { return s.hub.HasBulk("kitchen") })
}

func TestNodeThatKnowsNoAsking(t *testing.T) {
	ca := newAuthority(t)
	s := listen(t, ca, loopback, nil, http.HandlerFunc(whoami), func(h *tunnel.Hub) { h.Wait = time.Hour })
	s.nodeThat(t, ca, "old", http.NotFoundHandler())
	if _, err := s.hub.Transport(t.Context(), "old"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("got %v, want the node's answer in it", err)
	}
}

func TestRedialRenewsBulkOnlyWhenItIsUp(t *testing.T) {
	ca := newAuthority(t)
	s := listen(t, ca, loopback, nil, http.HandlerFunc(whoami))
	var n counter
	d := node(t, ca, "kitchen", []string{s.address}, http.HandlerFunc(whoami), n.count)
	eventually(t, "connected", func() bool { return n.control.Load() == 1 })
	d.Redial()
	eventually(t, "control renewed", func() bool { return n.control.Load() == 2 })
	passed(t, 100*time.Millisecond)
	if got := n.bulk.Load(); got != 0 {
		t.Fatalf("bulk, which was down, came up %d times", got)
	}
	s.bulk(t, "kitchen")
	eventually(t, "bulk up", func() bool { return n.bulk.Load() == 1 })
	passed(t, 100*time.Millisecond)
	if got := n.bulk.Load(); got != 1 {
		t.Fatalf("bulk came up %d times, once for the redial before", got)
	}
	d.Redial()
	eventually(t, "both renewed", func() bool { return n.control.Load() == 3 && n.bulk.Load() == 2 })
	eventually(t, "reached", func() bool {
		_, err := get(t, &http.Client{Transport: s.bulk(t, "kitchen")}, "http://node/logs")
		return err == nil
	})
}

func TestBulkGoesWhereControlIs(t *testing.T) {
	ca := newAuthority(t)
	s := listen(t, ca, loopback, nil, http.HandlerFunc(whoami))
	var dead atomic.Int32
	d := node(t, ca, "kitchen", []string{"127.0.0.1:1", s.address}, nil, func(d *tunnel.Dialer) {
		dial := d.Dial
		d.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if address != s.address {
				dead.Add(1)
			}
			return dial(ctx, network, address)
		}
	})
	eventually(t, "connected", d.Connected)
	before := dead.Load()
	s.bulk(t, "kitchen")
	if got := dead.Load(); got != before {
		t.Errorf("the dead address was dialled for bulk too")
	}
}

func TestAskingIsForPostOnControl(t *testing.T) {
	ca := newAuthority(t)
	s := listen(t, ca, loopback, nil, http.HandlerFunc(whoami))
	node(t, ca, "kitchen", []string{s.address}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "the node's own "+r.Method+" "+r.URL.Path)
	}), nil)
	bulk := &http.Client{Transport: s.bulk(t, "kitchen")}
	if got, err := get(t, bulk, "http://node"+tunnel.AskPath); got != "the node's own GET "+tunnel.AskPath || err != nil {
		t.Errorf("on bulk: %q, %v", got, err)
	}
	control := &http.Client{Transport: s.hub.Control("kitchen")}
	if got, err := get(t, control, "http://node/logs"); got != "the node's own GET /logs" || err != nil {
		t.Errorf("on control: %q, %v", got, err)
	}
	if got, err := get(t, control, "http://node"+tunnel.AskPath); !strings.Contains(got, "POST") || err != nil {
		t.Errorf("asked by GET: %q, %v", got, err)
	}
}
