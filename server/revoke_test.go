package server_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"bramble.dev/bramble/server"
	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/client"
	"bramble.dev/bramble/server/tunnel"
)

// post sends body to a path of ours as the administrator.
func (r *running) post(t *testing.T, path string, body, answer any) int {
	t.Helper()
	c, err := rest.HTTPClientFor(r.config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Post(r.config.Host+path, "application/json", bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(answer); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

// A revoked node is cut off at once on every way, and comes back only with a newer
// token and another key.
func TestRevokedNode(t *testing.T) {
	r := start(t, t.TempDir(), nil)
	early := r.token(t)
	n := r.join(t, "shelf", http.NotFoundHandler())
	eventually(t, "the tunnel is up", n.dialer.Connected)
	direct := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{n.cert}, InsecureSkipVerify: true}}}
	defer direct.CloseIdleConnections()
	const pods = "/api/v1/pods?watch=true&fieldSelector=spec.nodeName%3Dshelf"
	watch, err := direct.Get("https://" + r.address + pods)
	if err != nil || watch.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", watch, err)
	}
	defer watch.Body.Close()

	var answer api.RevokeResponse
	if code := r.post(t, api.RevokePath, api.RevokeRequest{NodeName: "shelf"}, &answer); code != http.StatusCreated || answer.NodeName != "shelf" {
		t.Fatalf("%d %+v", code, answer)
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, watch.Body)
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(3 * time.Second):
		t.Error("a watch of the revoked node goes on")
	}
	eventually(t, "the tunnel is cut", func() bool { return !n.dialer.Connected() })
	if resp, err := direct.Get("https://" + r.address + "/api/v1/nodes/shelf"); err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a request of the revoked node: %v %v", resp, err)
	}
	if _, err := client.Renew(t.Context(), r.address, []byte(n.joined.CA), n.cert, nil); !apierrors.IsUnauthorized(err) || !strings.Contains(err.Error(), "was revoked") {
		t.Errorf("renewal: %v", err)
	}
	node, err := r.admin(t).CoreV1().Nodes().Get(t.Context(), "shelf", metav1.GetOptions{})
	if err != nil || node.Annotations[api.RevokedKey] == "" || !hasTaint(node, api.RevokedKey) {
		t.Errorf("the Node is not marked: %v %v", node, err)
	}

	key := n.cert.PrivateKey.(*ecdsa.PrivateKey)
	if _, err := client.Join(t.Context(), r.address, early, "shelf", newKey(t)); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "edgectl token create") {
		t.Errorf("a token from before: %v", err)
	}
	token := r.token(t)
	if _, err := client.Join(t.Context(), r.address, token, "shelf", key); !apierrors.HasStatusCause(err, api.CauseKeyRevoked) {
		t.Errorf("the revoked key: %v", err)
	}
	again, err := client.Join(t.Context(), r.address, token, "shelf", newKey(t))
	if err != nil || again.PodCIDR != n.joined.PodCIDR {
		t.Fatalf("the node does not come back: %+v %v", again, err)
	}
	if _, err := client.Renew(t.Context(), r.address, []byte(n.joined.CA), n.cert, nil); !apierrors.IsUnauthorized(err) {
		t.Errorf("renewal by the old key: %v", err)
	}
	node, err = r.admin(t).CoreV1().Nodes().Get(t.Context(), "shelf", metav1.GetOptions{})
	if err != nil || node.Annotations[api.RevokedKey] != "" || hasTaint(node, api.RevokedKey) {
		t.Errorf("the Node is still marked: %v %v", node, err)
	}
	var status metav1.Status
	if code := r.post(t, api.RevokePath, api.RevokeRequest{NodeName: "nosuch"}, &status); code != http.StatusNotFound {
		t.Errorf("a node that is none: %d %+v", code, status)
	}
}

func hasTaint(n *corev1.Node, key string) bool {
	for _, taint := range n.Spec.Taints {
		if taint.Key == key {
			return true
		}
	}
	return false
}

// A node whose clock is at 1970 or 2099 joins nothing anew: it is heard and gets
// its certificate renewed, also when that has expired.
func TestExpiredCertificateIsForRenewalOnly(t *testing.T) {
	r := start(t, t.TempDir(), func(c *server.Config) { c.NodeCertificateLife = 2 * time.Second })
	key := newKey(t)
	joined, err := client.Join(t.Context(), r.address, r.token(t), "shelf", key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pair(t, joined.Certificate, key)
	<-time.After(time.Until(cert.Leaf.NotAfter) + 1100*time.Millisecond)
	for _, year := range []int{1970, 2026, 2099} {
		now := func() time.Time { return time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC) }
		config, err := client.TLSConfig([]byte(joined.CA), cert, now)
		if err != nil {
			t.Fatal(err)
		}
		refused := make(chan error, 16)
		d := tunnel.NewDialer(func() []string { return []string{r.address} }, func() (*tls.Config, error) { return config, nil }, nil, quiet())
		d.OnError = func(_ tunnel.Channel, err error) { refused <- err }
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = d.Run(ctx)
		}()
		if err := <-refused; !errors.Is(err, tunnel.ErrExpired) {
			t.Errorf("%d: the tunnel: %v", year, err)
		}
		cancel()
		<-done
		again, err := client.Renew(t.Context(), r.address, []byte(joined.CA), cert, now)
		if err != nil {
			t.Errorf("%d: renewal: %v", year, err)
			continue
		}
		if fresh := pair(t, again.Certificate, key); !fresh.Leaf.NotAfter.After(cert.Leaf.NotAfter) {
			t.Errorf("%d: the new certificate ends at %v", year, fresh.Leaf.NotAfter)
		}
	}
}

// Answers carry the server's own time, by which nodes judge when to renew.
func TestAnswersCarryTheServersTime(t *testing.T) {
	floor := time.Now().AddDate(3, 0, 0).UTC() // the wall clock is far behind the build
	r := start(t, t.TempDir(), func(c *server.Config) { c.BuildDate = floor })
	n := r.join(t, "shelf", http.NotFoundHandler())
	if _, known := n.ServerTime(); known {
		t.Error("the time is known before an answer")
	}
	if _, err := n.GetNode(t.Context(), "shelf"); err != nil {
		t.Fatal(err)
	}
	if got, known := n.ServerTime(); !known || got.Before(floor.Truncate(time.Second)) || got.After(floor.Add(time.Minute)) {
		t.Errorf("got %v, %v, want about %v", got, known, floor)
	}
}
