package server_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"bramble.dev/bramble/server"
	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/store"
)

// Kubernetes' own namespaces stay, whoever asks: nodes' Leases lie in one.
func TestOwnNamespacesStay(t *testing.T) {
	r := start(t, t.TempDir(), nil)
	spaces := r.admin(t).CoreV1().Namespaces()
	for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		err := spaces.Delete(t.Context(), name, metav1.DeleteOptions{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "may not be deleted") {
			t.Errorf("%s: %v", name, err)
		}
		if ns, err := spaces.Get(t.Context(), name, metav1.GetOptions{}); err != nil || ns.DeletionTimestamp != nil {
			t.Errorf("%s: %v %v", name, ns, err)
		}
	}
}

// An administrator who asks to be taken for somebody else has that one's rights
// and no more.
func TestImpersonatorHasTheOthersRights(t *testing.T) {
	r := start(t, t.TempDir(), nil)
	for _, as := range []rest.ImpersonationConfig{{UserName: "bob"}, {UserName: "system:node:shelf", Groups: []string{"system:nodes"}}} {
		config := rest.CopyConfig(r.config)
		config.Impersonate = as
		c, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Get(config.Host + "/api/v1/secrets")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("as %s: %s", as.UserName, resp.Status)
		}
		c.CloseIdleConnections()
	}
}

// The store stands among the checks of readiness.
func TestReadyzAsksTheStore(t *testing.T) {
	r := start(t, t.TempDir(), nil)
	body, err := r.admin(t).RESTClient().Get().AbsPath("/readyz").Param("verbose", "").Do(t.Context()).Raw()
	if err != nil || !strings.Contains(string(body), "[+]store ok") {
		t.Errorf("%s %v", body, err)
	}
}

// A node's own things are small, so that what it sends may be no more than that.
func TestNodeBodies(t *testing.T) {
	r := start(t, t.TempDir(), nil)
	n := r.join(t, "shelf", http.NotFoundHandler())
	body := `{"status":{"conditions":[{"type":"Ready","message":"` + strings.Repeat("x", 300<<10) + `"}]}}`
	c := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{n.cert}, InsecureSkipVerify: true}}}
	defer c.CloseIdleConnections()
	for _, patch := range []string{"application/merge-patch+json", "application/strategic-merge-patch+json"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, "https://"+r.address+"/api/v1/nodes/shelf/status", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", patch)
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %s", patch, resp.Status)
		}
	}
}

// A client that never ends its request does not make an orderly stop fail.
func TestStopWithARequestThatHangs(t *testing.T) {
	r := start(t, t.TempDir(), func(c *server.Config) { c.ShutdownTimeout = 500 * time.Millisecond })
	conn, err := tls.Dial("tcp", r.address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("POST " + api.JoinPath + " HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if err := r.stop(); err != nil {
		t.Errorf("the stop failed: %v", err)
	}
}

// refuses holds that no server serves what is in dir, and says why.
func refuses(t *testing.T, dir, why string) {
	t.Helper()
	cfg := server.DefaultConfig()
	cfg.DataDir, cfg.Listen = dir, "127.0.0.1:0"
	s, err := server.New(cfg, nil, quiet())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.Run(ctx); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("it served: %v", err)
	}
}

// An emptied database is not taken for a new cluster; a removed one is.
func TestEmptiedDatabase(t *testing.T) {
	dir := t.TempDir()
	r := start(t, dir, nil)
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, store.FileName)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	refuses(t, dir, "the file is empty")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	start(t, dir, nil)
	fresh := t.TempDir()
	if err := os.WriteFile(filepath.Join(fresh, store.FileName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, fresh, nil) // killed in its first moments
}

// A database whose authority is gone is not served under a new one.
func TestDatabaseWithoutItsAuthorityIsNotServed(t *testing.T) {
	dir := t.TempDir()
	r := start(t, dir, nil)
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "pki")); err != nil {
		t.Fatal(err)
	}
	refuses(t, dir, "bramble-server restore")
}

// Quantities that take for ever to compare are refused wherever they come in.
func TestMonstrousQuantities(t *testing.T) {
	r := start(t, t.TempDir(), nil)
	n := r.join(t, "shelf", http.NotFoundHandler())
	c, err := rest.HTTPClientFor(r.config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	node := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{n.cert}, InsecureSkipVerify: true}}}
	defer node.CloseIdleConnections()
	const pods = "/api/v1/namespaces/default/pods"
	monster := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1e999999999")}},
	}}}}
	config := rest.CopyConfig(r.config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := typed.CoreV1().Pods("default").Create(t.Context(), monster, metav1.CreateOptions{}); !apierrors.IsBadRequest(err) {
		t.Errorf("in protobuf: %v", err)
	}
	var many []corev1.Container
	for i := range 100 {
		many = append(many, corev1.Container{Name: fmt.Sprintf("c%d", i), Image: "i", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"cpu": resource.MustParse("1e999999")},
		}})
	}
	monster.Spec.Containers = many
	if _, err := typed.CoreV1().Pods("default").Create(t.Context(), monster, metav1.CreateOptions{}); !apierrors.IsBadRequest(err) {
		t.Errorf("a hundred of six digits in protobuf: %v", err)
	}
	hash := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "1e94521"}, Data: map[string]string{"7e12345": "a hash is no quantity"}}
	if _, err := typed.CoreV1().ConfigMaps("default").Create(t.Context(), hash, metav1.CreateOptions{}); err != nil {
		t.Errorf("names that begin like numbers: %v", err)
	}
	for _, quantity := range []string{"1e999999999", "1e-999999999", "+0.1E99999", `1\u0065999999999`} {
		pod := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i",` +
			`"resources":{"limits":{"cpu":"` + quantity + `"},"requests":{"cpu":"1"}}}]}}`
		for _, test := range []struct {
			client                          *http.Client
			method, path, media, body, want string
		}{
			{c, "POST", pods, "application/json", pod, "spec.containers[0].resources.limits.cpu"},
			{c, "PATCH", pods + "/p?fieldManager=t", "application/apply-patch+yaml", pod, "spec.containers[0].resources.limits.cpu"},
			{node, "PATCH", "/api/v1/nodes/shelf/status", "application/merge-patch+json", `{"status":{"capacity":{"cpu":"` + quantity + `"}}}`, "status.capacity.cpu"},
		} {
			req, err := http.NewRequestWithContext(t.Context(), test.method, "https://"+r.address+test.path, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Host, req.Header = api.ServerName, http.Header{"Content-Type": {test.media}}
			resp, err := test.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode < 400 || resp.StatusCode >= 500 || !strings.Contains(string(text), test.want) {
				t.Errorf("%s %s of %.20s: %s %.300s %v", test.method, test.path, quantity, resp.Status, text, err)
			}
		}
	}
}
