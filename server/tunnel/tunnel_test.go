package tunnel_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/tunnel"
)

// authority signs what the tests need.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert, a.key = issue(t, template, template, nil)
	a.pool.AddCert(a.cert)
	return a
}

func issue(t *testing.T, template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func (a *authority) certificate(t *testing.T, name, group string) tls.Certificate {
	t.Helper()
	cert, key := issue(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name, Organization: []string{group}},
		DNSNames: []string{name}, NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(time.Hour),
	}, a.cert, a.key)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}
}

// server is a Hub behind a TLS listener on the loopback.
type server struct {
	hub      *tunnel.Hub
	address  string
	stop     func()
	refusing atomic.Bool // every new connection
}

// bulk waits for the node and returns what reaches it, over a session that is up.
func (s *server) bulk(t *testing.T, node string) (rt http.RoundTripper) {
	t.Helper()
	eventually(t, node+" connected", func() bool { return s.hub.Connected(node) })
	rt, err := s.hub.Transport(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

// nodeThat connects a node's control without a Dialer: h gets all that the hub sends.
func (s *server) nodeThat(t *testing.T, a *authority, name string, h http.Handler) {
	t.Helper()
	config := tunnel.ClientTLS(&tls.Config{RootCAs: a.pool, Certificates: []tls.Certificate{a.certificate(t, api.NodeUserPrefix+name, api.GroupNodes)}})
	conn, err := tls.Dial("tcp", s.address, config)
	if err != nil {
		t.Fatal(err)
	}
	tunnel.ServeControl(t, conn, h)
	eventually(t, "connected", func() bool { return s.hub.Connected(name) })
}

// listen starts a server at address ("127.0.0.1:0" for any port).
func listen(t *testing.T, a *authority, address string, keep func(tunnel.Channel) tunnel.Keepalive, h http.Handler, adjust ...func(*tunnel.Hub)) *server {
	t.Helper()
	config := &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{api.ALPN, "http/1.1"}, ClientAuth: tls.RequireAndVerifyClientCert,
		Certificates: []tls.Certificate{a.certificate(t, api.ServerName, "server")}, ClientCAs: a.pool,
	}
	l, err := tls.Listen("tcp", address, config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := &server{hub: tunnel.NewHub(quiet(), keep), address: l.Addr().String()}
	for _, f := range adjust {
		f(s.hub)
	}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer conn.Close()
				c := conn.(*tls.Conn)
				if c.HandshakeContext(ctx) != nil {
					return
				}
				if s.refusing.Load() {
					tunnel.Refuse(c, errors.New("the server is full"))
					return
				}
				leaf := c.ConnectionState().PeerCertificates[0]
				s.hub.Serve(ctx, c, api.User{Name: leaf.Subject.CommonName, Groups: leaf.Subject.Organization}, h)
			})
		}
	})
	s.stop = sync.OnceFunc(func() {
		l.Close()
		cancel()
		group.Wait()
	})
	t.Cleanup(s.stop)
	return s
}

// node starts a Dialer that joins as name and has its Run awaited at the end.
func node(t *testing.T, a *authority, name string, addresses []string, h http.Handler, adjust func(*tunnel.Dialer)) *tunnel.Dialer {
	t.Helper()
	config := &tls.Config{RootCAs: a.pool, Certificates: []tls.Certificate{a.certificate(t, api.NodeUserPrefix+name, api.GroupNodes)}}
	d := tunnel.NewDialer(func() []string { return addresses }, func() (*tls.Config, error) { return config, nil }, h, quiet())
	d.Backoff = tunnel.Backoff{Min: 20 * time.Millisecond, Max: 100 * time.Millisecond}
	if adjust != nil {
		adjust(d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return d
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// client speaks HTTP to the server through d.
func client(t *testing.T, d *tunnel.Dialer) *http.Client {
	transport := &http.Transport{DialContext: d.DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func get(t *testing.T, c *http.Client, url string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// eventually polls until ok, for at most ten seconds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			t.Fatalf("not in 10 s: %s", what)
		case <-tick.C:
		}
	}
}

// whoami answers with the user that the request's context carries.
func whoami(w http.ResponseWriter, r *http.Request) {
	user, _ := api.UserFrom(r.Context())
	io.WriteString(w, user.Name)
}

// forwarder is a TCP proxy that can fall silent, as a NAT that forgot us.
type forwarder struct {
	address string
	mu      sync.Mutex
	silent  map[net.Conn]bool // the connections there are, and whether they are silent
}

func forward(t *testing.T, to string) *forwarder {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &forwarder{address: l.Addr().String(), silent: map[net.Conn]bool{}}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			f.mu.Lock()
			f.silent[in], f.silent[out] = false, false
			f.mu.Unlock()
			group.Go(func() { f.pump(in, out) })
			group.Go(func() { f.pump(out, in) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		f.mu.Lock()
		for c := range f.silent {
			c.Close()
		}
		f.mu.Unlock()
		group.Wait()
	})
	return f
}

func (f *forwarder) pump(from, to net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		f.mu.Lock()
		silent := f.silent[from]
		f.mu.Unlock()
		if silent {
			if err != nil {
				return // and the other side hears nothing of it
			}
			continue
		}
		if n > 0 {
			to.Write(buf[:n])
		}
		if err != nil {
			to.Close()
			return
		}
	}
}

// dropAll silences the connections that there are now; new ones work.
func (f *forwarder) dropAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.silent {
		f.silent[c] = true
	}
}
