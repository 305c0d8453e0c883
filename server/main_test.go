package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"bramble.dev/bramble/server"
	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/client"
	"bramble.dev/bramble/server/tunnel"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// running is a server under test.
type running struct {
	address string
	config  *rest.Config // the administrator's
	stop    func() error // once; waits
}

// start runs a server over dir until the test ends or stop is called.
func start(t *testing.T, dir string, adjust func(*server.Config)) *running {
	t.Helper()
	cfg := server.DefaultConfig()
	cfg.DataDir, cfg.Listen = dir, "127.0.0.1:0"
	cfg.BuildDate = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if adjust != nil {
		adjust(&cfg)
	}
	s, err := server.New(cfg, nil, quiet())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	select {
	case <-s.Ready():
	case err := <-done:
		cancel()
		t.Fatal(err)
	}
	r := &running{address: s.Address()}
	r.stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
	if r.config, err = clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "admin.kubeconfig")); err != nil {
		t.Fatal(err)
	}
	r.config.QPS = -1
	return r
}

func (r *running) admin(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(r.config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// token makes a join token as edgectl does.
func (r *running) token(t *testing.T) string {
	t.Helper()
	c, err := rest.HTTPClientFor(r.config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	resp, err := c.Post(r.config.Host+api.TokensPath, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatalf("no token: %s %s %v", resp.Status, text, err)
	}
	var out api.TokenResponse
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out.Token
}

// node is a node's agent, as far as the server sees it.
type node struct {
	*client.Client
	dialer *tunnel.Dialer
	joined api.JoinResponse
	cert   tls.Certificate
	epochs chan string
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// join makes a node of that name and runs its tunnel; h serves the server's
// requests.
func (r *running) join(t *testing.T, name string, h http.Handler) *node {
	t.Helper()
	key := newKey(t)
	joined, err := client.Join(t.Context(), r.address, r.token(t), name, key)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{joined: joined, cert: pair(t, joined.Certificate, key), epochs: make(chan string, 16)}
	config, err := client.TLSConfig([]byte(joined.CA), n.cert, nil)
	if err != nil {
		t.Fatal(err)
	}
	n.dialer = tunnel.NewDialer(func() []string { return []string{r.address} }, func() (*tls.Config, error) { return config, nil }, h, quiet())
	n.dialer.Backoff = tunnel.Backoff{Min: 20 * time.Millisecond, Max: 200 * time.Millisecond}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.dialer.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	n.Client, err = client.New(n.dialer.DialContext, client.Config{OnEpoch: func(e string, _ []string) { n.epochs <- e }})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func pair(t *testing.T, certificate string, key *ecdsa.PrivateKey) tls.Certificate {
	t.Helper()
	block, _ := pem.Decode([]byte(certificate))
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
}

// eventually polls until ok, for at most ten seconds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	within(t, 10*time.Second, what, ok)
}

// within polls until ok, for at most limit.
func within(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(limit)
	for {
		began := time.Now()
		if ok() {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("not in %v: %s", limit, what)
		case <-time.After(max(10*time.Millisecond, 2*time.Since(began))): // leaves the machine to what it waits for
		}
	}
}
