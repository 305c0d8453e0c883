package client_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/client"
)

// serve returns a Client of a plain HTTP server with this handler.
func serve(t *testing.T, cfg client.Config, h http.HandlerFunc) *client.Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	address := srv.Listener.Addr().String()
	c, err := client.New(func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func answer(w http.ResponseWriter, code int, v any) {
	if status, ok := v.(metav1.Status); ok {
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		v = status
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(v)
}

func TestRequests(t *testing.T) {
	var got string
	c := serve(t, client.Config{UserAgent: "agent"}, func(w http.ResponseWriter, r *http.Request) {
		got = r.Method + " " + r.URL.Path
		if r.UserAgent() != "agent" || r.Host != api.ServerName {
			t.Errorf("agent %q, host %q", r.UserAgent(), r.Host)
		}
		answer(w, 200, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"})
	})
	ctx, p := t.Context(), client.Patch{Type: "application/merge-patch+json", Body: []byte("{}")}
	meta := metav1.ObjectMeta{Name: "n"}
	for want, do := range map[string]func(){
		"GET /api/v1/nodes/n":                                                  func() { c.GetNode(ctx, "n") },
		"POST /api/v1/nodes":                                                   func() { c.CreateNode(ctx, &corev1.Node{ObjectMeta: meta}) },
		"PUT /api/v1/nodes/n":                                                  func() { c.UpdateNode(ctx, &corev1.Node{ObjectMeta: meta}) },
		"PATCH /api/v1/nodes/n":                                                func() { c.PatchNode(ctx, "n", p) },
		"PATCH /api/v1/nodes/n/status":                                         func() { c.PatchNodeStatus(ctx, "n", p) },
		"GET /api/v1/namespaces/d/pods/p":                                      func() { c.GetPod(ctx, "d", "p") },
		"PATCH /api/v1/namespaces/d/pods/p/status":                             func() { c.PatchPodStatus(ctx, "d", "p", p) },
		"DELETE /api/v1/namespaces/d/pods/p":                                   func() { c.DeletePod(ctx, "d", "p", metav1.DeleteOptions{}) },
		"GET /api/v1/namespaces/d/configmaps/x":                                func() { c.GetConfigMap(ctx, "d", "x") },
		"GET /api/v1/namespaces/d/secrets/x":                                   func() { c.GetSecret(ctx, "d", "x") },
		"GET /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n": func() { c.GetLease(ctx, "n") },
		"PATCH /api/v1/namespaces/d/events/e":                                  func() { c.PatchEvent(ctx, "d", "e", p) },
		"GET /apis/edge.bramble.dev/v1alpha1/nodehardwares/n":                  func() { c.GetNodeHardware(ctx, "n") },
		"PATCH /apis/edge.bramble.dev/v1alpha1/nodehardwares/n/status":         func() { c.PatchNodeHardwareStatus(ctx, "n", p) },
	} {
		if do(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestErrorsAreStatusErrors(t *testing.T) {
	c := serve(t, client.Config{}, func(w http.ResponseWriter, r *http.Request) {
		answer(w, 404, apierrors.NewNotFound(corev1.Resource("nodes"), "n").Status())
	})
	if n, err := c.GetNode(t.Context(), "n"); n != nil || !apierrors.IsNotFound(err) {
		t.Errorf("%v, %v", n, err)
	}
}

func TestEpochIsToldBeforeTheAnswer(t *testing.T) {
	epoch := "one"
	var told []string
	c := serve(t, client.Config{OnEpoch: func(e string, _ []string) { told = append(told, e) }}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(api.HeaderEpoch, epoch)
		answer(w, 200, &corev1.Node{TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}})
	})
	for _, want := range []string{"one", "one", "two"} {
		epoch = want
		if _, err := c.GetNode(t.Context(), "n"); err != nil || c.Epoch() != want {
			t.Errorf("epoch %q, want %q (%v)", c.Epoch(), want, err)
		}
	}
	if strings.Join(told, " ") != "one two" {
		t.Errorf("told %v", told)
	}
}

// The reflector comes through a server that knows no initial events, breaks
// watches and forgets history.
func TestWatchPodsComesThrough(t *testing.T) {
	var mu sync.Mutex
	lists := 0
	c := serve(t, client.Config{}, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("fieldSelector") != "spec.nodeName=kitchen" {
			t.Errorf("selector %q", q.Get("fieldSelector"))
		}
		mu.Lock()
		defer mu.Unlock()
		pod := corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}}
		switch {
		case q.Get("sendInitialEvents") != "":
			answer(w, 400, apierrors.NewBadRequest("no such thing").Status())
		case q.Get("watch") == "":
			lists++
			pod.ObjectMeta = metav1.ObjectMeta{Namespace: "d", Name: fmt.Sprint("p", lists), UID: "u", ResourceVersion: "1"}
			answer(w, 200, &corev1.PodList{
				TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"},
				ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(lists)}, Items: []corev1.Pod{pod},
			})
		case lists == 1:
			answer(w, 410, apierrors.NewResourceExpired("gone").Status())
		default:
			pod.ObjectMeta = metav1.ObjectMeta{Namespace: "d", Name: "later", ResourceVersion: "9"}
			answer(w, 200, map[string]any{"type": "ADDED", "object": &pod})
			http.NewResponseController(w).Flush()
			mu.Unlock()
			<-r.Context().Done()
			mu.Lock()
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	store := &waiting{Store: cache.NewStore(cache.MetaNamespaceKeyFunc), added: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.WatchPods(ctx, "kitchen", store)
	}()
	select {
	case <-store.added:
	case <-ctx.Done():
		t.Error("the second list's watch brought nothing")
	}
	if got := strings.Join(store.ListKeys(), " "); !strings.Contains(got, "d/later") || strings.Contains(got, "d/p1") {
		t.Errorf("the store has %s", got)
	}
	cancel()
	<-done
}

type waiting struct {
	cache.Store
	added chan struct{}
}

func (w *waiting) Add(obj any) error {
	defer close(w.added)
	return w.Store.Add(obj)
}

func TestHostPort(t *testing.T) {
	for in, want := range map[string]string{
		"10.0.0.1": "10.0.0.1:6443", "board.lan:7000": "board.lan:7000", "https://board.lan": "board.lan:6443",
		" https://10.0.0.1:6443/ ": "10.0.0.1:6443", "fd00::1": "[fd00::1]:6443", "[fd00::1]": "[fd00::1]:6443", "[fd00::1]:7": "[fd00::1]:7",
	} {
		if got := client.HostPort(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// identity is a server's certificate chain and its CA.
func identity(t *testing.T) (tls.Certificate, *x509.Certificate) {
	t.Helper()
	sign := func(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if signer == nil {
			signer = key
		}
		template.NotBefore, template.NotAfter = time.Unix(1e9, 0), time.Unix(2e9, 0)
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
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true}
	ca, caKey := sign(root, root, nil)
	leaf, key := sign(&x509.Certificate{SerialNumber: big.NewInt(2), DNSNames: []string{api.ServerName}}, ca, caKey)
	return tls.Certificate{Certificate: [][]byte{leaf.Raw, ca.Raw}, PrivateKey: key}, ca
}

func TestTLSAtAnyClock(t *testing.T) {
	cert, ca := identity(t)
	_, other := identity(t)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	defer group.Wait()
	defer l.Close()
	group.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.(*tls.Conn).HandshakeContext(t.Context())
			conn.Close()
		}
	})
	encode := func(c *x509.Certificate) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
	}
	dial := func(ca []byte, year int) error {
		config, err := client.TLSConfig(ca, tls.Certificate{}, func() time.Time { return time.Date(year, 1, 2, 0, 0, 0, 0, time.UTC) })
		if err != nil {
			t.Fatal(err)
		}
		conn, err := tls.Dial("tcp", l.Addr().String(), config)
		if err == nil {
			conn.Close()
		}
		return err
	}
	for _, year := range []int{1970, 2026, 2099} {
		if err := dial(encode(ca), year); err != nil {
			t.Errorf("%d: %v", year, err)
		}
		if err := dial(encode(other), year); err == nil {
			t.Errorf("%d: another CA was believed", year)
		}
	}
	if _, err := client.TLSConfig([]byte("no PEM"), tls.Certificate{}, nil); err == nil {
		t.Error("no PEM was taken for a CA")
	}
}

func TestJoinBelievesOnlyTheTokensCA(t *testing.T) {
	cert, ca := identity(t)
	reached := false
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached = true
		if r.Header.Get("Authorization") != "Bearer id.secret" {
			t.Errorf("authorization %q", r.Header.Get("Authorization"))
		}
		answer(w, 401, apierrors.NewUnauthorized("the join token has expired").Status())
	}))
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	srv.StartTLS()
	defer srv.Close()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Join(t.Context(), srv.URL, "bramble1."+strings.Repeat("0", 64)+".id.secret", "n", key)
	if !errors.Is(err, client.ErrOtherCA) || reached {
		t.Errorf("another CA: %v; the token was sent: %v", err, reached)
	}
	_, err = client.Join(t.Context(), srv.URL, "bramble1."+client.KeyHash(ca)+".id.secret", "n", key)
	if !apierrors.IsUnauthorized(err) || !strings.Contains(err.Error(), "has expired") {
		t.Errorf("the right CA: %v", err)
	}
}
