package server_test

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
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

// An administrator who asks to be taken for somebody else is not served with
// the administrator's own rights.
func TestNoImpersonation(t *testing.T) {
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
