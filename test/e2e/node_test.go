package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/client"
	"bramble.dev/bramble/test/cluster"
)

// TestNodeKeepsToItself joins a node by hand and tries what a stolen board
// could: another node's Secret, pod, Lease and Node, and the rest of the API.
func TestNodeKeepsToItself(t *testing.T) {
	t.Parallel()
	s := cluster.StartServer(t)
	mine, other := join(t, s, "mine"), join(t, s, "other")
	for _, m := range []string{secretPod("mine"), secretPod("other")} {
		s.Apply(m)
	}
	const pods, secrets = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/secrets"
	const merge = "application/merge-patch+json"
	for _, test := range []struct {
		method, path, contentType, body string
		code                            int
	}{
		{"GET", secrets + "/mine", "", "", 200},
		{"GET", secrets + "/other", "", "", 403},
		{"GET", secrets, "", "", 403},
		{"PUT", secrets + "/mine", "application/json", "{}", 403},
		{"GET", pods + "?fieldSelector=spec.nodeName%3Dmine", "", "", 200},
		{"GET", pods, "", "", 403},
		{"GET", pods + "?fieldSelector=spec.nodeName%3Dother", "", "", 403},
		{"PATCH", pods + "/mine/status", merge, `{"status":{"message":"hello"}}`, 200},
		{"PATCH", pods + "/other/status", merge, `{"status":{"message":"hello"}}`, 403},
		{"PATCH", pods + "/mine", merge, `{"metadata":{"labels":{"a":"b"}}}`, 403},
		{"DELETE", pods + "/other", "", "", 403},
		{"POST", pods, "application/json", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"new"},"spec":{"containers":[{"name":"c","image":"i"}]}}`, 403},
		{"GET", "/api/v1/nodes/other", "", "", 403},
		{"PATCH", "/api/v1/nodes/other/status", merge, `{"status":{}}`, 403},
		{"GET", "/api/v1/namespaces/kube-system/configmaps/any", "", "", 403},
		{"POST", api.TokensPath, "application/json", "{}", 403},
		{"GET", "/metrics", "", "", 403},
		{"POST", pods + "/mine/exec?command=true&stdout=true", "", "", 403},
		{"GET", pods + "/mine/portforward", "", "", 403},
		{"POST", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", "application/json",
			`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"other"},"spec":{"holderIdentity":"other"}}`, 403},
	} {
		if code, status := mine.send(t, test.method, test.path, test.contentType, test.body); code != test.code {
			t.Errorf("%s %s: %d %q, want %d", test.method, test.path, code, status.Message, test.code)
		}
	}
	if code, _ := other.send(t, "GET", secrets+"/other", "", ""); code != http.StatusOK {
		t.Errorf("the other node cannot read its own pod's Secret: %d", code)
	}
}

// secretPod is a Secret and a pod bound to the node of the same name that uses it.
func secretPod(name string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: %[1]s}
stringData: {password: x}
---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s}
spec:
  nodeName: %[1]s
  containers: [{name: c, image: i, volumeMounts: [{name: s, mountPath: /s}]}]
  volumes: [{name: s, secret: {secretName: %[1]s}}]
`, name)
}

// TestTokens holds that a token is good for what it says and nothing else, and
// that each refusal says what to do.
func TestTokens(t *testing.T) {
	t.Parallel()
	s := cluster.StartServer(t)
	key := newKey(t)
	good := s.Token()
	wrong := good[:len(good)-4] + "0000"
	if good == wrong {
		wrong = good[:len(good)-4] + "1111"
	}
	try := func(token, name string, key *ecdsa.PrivateKey) error {
		_, err := client.Join(t.Context(), s.Address, token, name, key)
		return err
	}
	if err := try(wrong, "a", key); !apierrors.IsUnauthorized(err) && !apierrors.IsForbidden(err) {
		t.Errorf("a wrong token: %v", err)
	}
	if err := try("nonsense", "a", key); err == nil {
		t.Error("nonsense is taken for a token")
	}
	if err := try(good, "Not_A_Name", key); err == nil {
		t.Error("a bad node name is taken")
	}
	if err := try(good, "a", key); err != nil {
		t.Fatalf("a good token: %v", err)
	}
	second := try(good, "b", newKey(t))
	if second == nil || !strings.Contains(second.Error(), "edgectl token create") {
		t.Errorf("a token used twice: %v, want the way out", second)
	}
	taken := try(s.Token(), "a", newKey(t))
	if !apierrors.IsConflict(taken) && !apierrors.IsAlreadyExists(taken) {
		t.Errorf("a taken name: %v, want a conflict", taken)
	}
	if err := try(s.Token(), "a", key); err != nil {
		t.Errorf("the same key joins again: %v", err)
	}
}

// TestCertificateOfAnotherAuthority is refused, and so is none at all.
func TestCertificateOfAnotherAuthority(t *testing.T) {
	s, stranger := cluster.StartServer(t), cluster.StartServer(t)
	config := s.Config()
	theirs := stranger.Config()
	config.CertData, config.KeyData = theirs.CertData, theirs.KeyData
	config.CertFile, config.KeyFile = theirs.CertFile, theirs.KeyFile
	if code, status := newCaller(t, config).send(t, "GET", "/api/v1/nodes", "", ""); code != http.StatusUnauthorized {
		t.Errorf("another authority's certificate: %d %q", code, status.Message)
	}
	anonymous := rest.AnonymousClientConfig(s.Config())
	for path, want := range map[string]int{"/api/v1/nodes": 401, "/version": 200, "/livez": 200, "/readyz": 200, "/metrics": 401, "/api": 401} {
		if code, status := newCaller(t, anonymous).send(t, "GET", path, "", ""); code != want {
			t.Errorf("%s without a certificate: %d %q, want %d", path, code, status.Message, want)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(s.Dir, "*.kubeconfig")); len(files) != 1 {
		t.Errorf("kubeconfigs: %v", files)
	}
}

// join joins a node and returns a caller with its certificate.
func join(t *testing.T, s *cluster.Server, name string) caller {
	t.Helper()
	key := newKey(t)
	answer, err := client.Join(t.Context(), s.Address, s.Token(), name, key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair([]byte(answer.Certificate), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(answer.CA))
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		Certificates: []tls.Certificate{pair}, RootCAs: roots, ServerName: api.ServerName,
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return caller{client: &http.Client{Transport: transport}, base: "https://" + s.Address}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
