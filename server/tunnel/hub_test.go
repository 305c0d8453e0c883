package tunnel_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/tunnel"
)

const loopback = "127.0.0.1:0"

func TestRequestsBothWaysOfTwoNodes(t *testing.T) {
	ca := newAuthority(t)
	s := listen(t, ca, loopback, nil, http.HandlerFunc(whoami))
	for _, name := range []string{"kitchen", "attic"} {
		d := node(t, ca, name, []string{s.address}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "%s has %s", name, r.URL.Path)
		}), nil)
		got, err := get(t, client(t, d), "http://bramble-server/")
		if want := api.NodeUserPrefix + name; got != want || err != nil {
			t.Errorf("the server saw %q, %v, want %q", got, err, want)
		}
	}
	for _, name := range []string{"kitchen", "attic"} {
		got, err := get(t, &http.Client{Transport: s.bulk(t, name)}, "http://node/logs")
		if want := name + " has /logs"; got != want || err != nil {
			t.Errorf("%s answered %q, %v, want %q", name, got, err, want)
		}
	}
	if _, err := s.hub.Transport(t.Context(), "cellar"); !errors.Is(err, tunnel.ErrNotConnected) {
		t.Errorf("Transport of an unknown node: %v, want ErrNotConnected", err)
	}
}

func TestControlIsQuickWhileBulkIsSaturated(t *testing.T) {
	ca := newAuthority(t)
	s := listen(t, ca, loopback, nil, http.HandlerFunc(whoami))
	d := node(t, ca, "kitchen", []string{s.address}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		line := []byte(strings.Repeat("a line of a log ", 1024))
		for r.Context().Err() == nil {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
	}), nil)
	eventually(t, "connected", d.Connected)
	rt := s.bulk(t, "kitchen")
	ctx, cancel := context.WithCancel(t.Context())
	var copied atomic.Int64
	var group sync.WaitGroup
	for range 4 {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://node/logs", nil)
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			resp, err := rt.RoundTrip(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			buf := make([]byte, 32<<10)
			for {
				n, err := resp.Body.Read(buf)
				copied.Add(int64(n))
				if err != nil {
					return
				}
			}
		})
	}
	eventually(t, "bulk flowing", func() bool { return copied.Load() > 1<<20 })
	before := copied.Load()
	c := client(t, d)
	var slowest time.Duration
	for range 100 {
		began := time.Now()
		if _, err := get(t, c, "http://bramble-server/lease"); err != nil {
			t.Fatal(err)
		}
		slowest = max(slowest, time.Since(began))
	}
	if copied.Load() == before {
		t.Error("bulk stood still meanwhile")
	}
	cancel()
	group.Wait()
	t.Logf("slowest of 100 requests: %v, bulk carried %d MiB", slowest, copied.Load()>>20)
	if slowest > time.Second {
		t.Errorf("a request on control took %v", slowest)
	}
}

func TestServerKilledAndBack(t *testing.T) {
	ca := newAuthority(t)
	s := listen(t, ca, loopback, nil, http.HandlerFunc(whoami))
	var connects, failures atomic.Int32
	d := node(t, ca, "kitchen", []string{"127.0.0.1:1", s.address}, nil, func(d *tunnel.Dialer) {
		d.OnConnect = func(c tunnel.Channel) {
			if c == tunnel.Control {
				connects.Add(1)
			}
		}
		d.OnError = func(tunnel.Channel, error) { failures.Add(1) }
		d.Wait = 10 * time.Millisecond
	})
	c := client(t, d)
	eventually(t, "connected", d.Connected)
	s.stop()
	eventually(t, "loss noticed", func() bool { return !d.Connected() && failures.Load() > 1 })
	if _, err := get(t, c, "http://bramble-server/"); !errors.Is(err, tunnel.ErrNotConnected) {
		t.Errorf("request without a server: %v, want ErrNotConnected", err)
	}
	listen(t, ca, s.address, nil, http.HandlerFunc(whoami))
	eventually(t, "connected again", d.Connected)
	if _, err := get(t, c, "http://bramble-server/"); err != nil {
		t.Error(err)
	}
	if n := connects.Load(); n != 2 {
		t.Errorf("OnConnect was called %d times, want 2", n)
	}
}

func TestSilentDropIsFoundByKeepalive(t *testing.T) {
	ca := newAuthority(t)
	keep := func(tunnel.Channel) tunnel.Keepalive {
		return tunnel.Keepalive{Interval: 50 * time.Millisecond, Timeout: 200 * time.Millisecond}
	}
	s := listen(t, ca, loopback, keep, http.HandlerFunc(whoami))
	f := forward(t, s.address)
	var connects atomic.Int32
	d := node(t, ca, "kitchen", []string{f.address}, http.HandlerFunc(whoami), func(d *tunnel.Dialer) {
		d.Keepalive = keep
		d.OnConnect = func(tunnel.Channel) { connects.Add(1) }
	})
	eventually(t, "connected", d.Connected)
	s.bulk(t, "kitchen")
	eventually(t, "both up", func() bool { return connects.Load() == 2 })
	f.dropAll()
	eventually(t, "the loss of bulk noticed", func() bool { return !s.hub.HasBulk("kitchen") })
	eventually(t, "control up again", func() bool { return connects.Load() >= 3 && d.Connected() })
	if _, err := get(t, client(t, d), "http://bramble-server/"); err != nil {
		t.Error(err)
	}
	s.bulk(t, "kitchen")
	eventually(t, "both up again", func() bool { return connects.Load() >= 4 && d.Connected() })
}

func TestRedialKeepsWhatRuns(t *testing.T) {
	ca := newAuthority(t)
	finish := make(chan struct{})
	s := listen(t, ca, loopback, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			http.NewResponseController(w).Flush()
			<-finish
		}
		whoami(w, r)
	}))
	var connects atomic.Int32
	d := node(t, ca, "kitchen", []string{s.address}, nil, func(d *tunnel.Dialer) {
		d.OnConnect = func(tunnel.Channel) { connects.Add(1) }
	})
	c := client(t, d)
	eventually(t, "connected", d.Connected)
	s.bulk(t, "kitchen")
	eventually(t, "both up", func() bool { return connects.Load() == 2 })
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://bramble-server/slow", nil)
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	d.Redial()
	eventually(t, "both up anew", func() bool { return connects.Load() == 4 })
	if _, err := get(t, client(t, d), "http://bramble-server/"); err != nil {
		t.Error(err)
	}
	close(finish)
	if body, err := io.ReadAll(resp.Body); string(body) != api.NodeUserPrefix+"kitchen" || err != nil {
		t.Errorf("the request on the old session ended with %q, %v", body, err)
	}
}

func TestDisconnectEndsHandlers(t *testing.T) {
	ca := newAuthority(t)
	ended := make(chan struct{}, 1)
	s := listen(t, ca, loopback, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
		ended <- struct{}{}
	}))
	d := node(t, ca, "kitchen", []string{s.address}, nil, nil)
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://bramble-server/watch", nil)
	resp, err := client(t, d).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	s.hub.Disconnect("kitchen")
	<-ended
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the watch of a disconnected node ended without an error")
	}
}

func TestRefusals(t *testing.T) {
	ca := newAuthority(t)
	s := listen(t, ca, loopback, nil, http.HandlerFunc(whoami))
	admin := &tls.Config{RootCAs: ca.pool, Certificates: []tls.Certificate{ca.certificate(t, "admin", api.GroupMasters)}}
	plain, err := tls.Listen("tcp", loopback, &tls.Config{Certificates: []tls.Certificate{ca.certificate(t, api.ServerName, "server")}})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	go func() {
		for {
			conn, err := plain.Accept()
			if err != nil {
				return
			}
			conn.(*tls.Conn).HandshakeContext(t.Context())
			conn.Close()
		}
	}()
	foreign := newAuthority(t)
	for _, test := range []struct {
		name, address, want string
		config              *tls.Config
	}{
		{"not a node", s.address, "only a node may open a tunnel", admin},
		{"no ALPN", plain.Addr().String(), "does not speak " + api.ALPN, admin},
		{"another CA", s.address, "certificate", &tls.Config{RootCAs: foreign.pool}},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			errs := make(chan error, 16)
			d := tunnel.NewDialer(func() []string { return []string{test.address} },
				func() (*tls.Config, error) { return test.config, nil }, nil, quiet())
			d.OnError = func(_ tunnel.Channel, err error) {
				select {
				case errs <- err:
				default:
				}
			}
			done := make(chan struct{})
			go func() { defer close(done); d.Run(ctx) }()
			if err := <-errs; !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, want %q in it", err, test.want)
			}
			cancel()
			<-done
		})
	}
}

func TestWrongPrefaceIsAnswered(t *testing.T) {
	ca := newAuthority(t)
	s := listen(t, ca, loopback, nil, http.HandlerFunc(whoami))
	config := tunnel.ClientTLS(&tls.Config{RootCAs: ca.pool, Certificates: []tls.Certificate{ca.certificate(t, "system:node:x", api.GroupNodes)}})
	conn, err := tls.Dial("tcp", s.address, config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "GET / HTTP/1.1\r\n\r\n")
	answer, err := io.ReadAll(conn)
	if !strings.HasPrefix(string(answer), "no ") || (err != nil && !errors.Is(err, net.ErrClosed)) {
		t.Errorf("got %q, %v", answer, err)
	}
}
