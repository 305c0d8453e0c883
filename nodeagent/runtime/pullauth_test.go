package runtime_test

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bramble.dev/bramble/nodeagent/container"
)

// TestPullWithCredentials pulls by TLS from a registry that wants a password, by an
// authority of its own, and looks for the password where it must not be.
func TestPullWithCredentials(t *testing.T) {
	t.Parallel()
	plain := registry(t)
	private := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if user, password, _ := q.BasicAuth(); user != "robot" || password != "hush-9471" {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		plain.Config.Handler.ServeHTTP(w, q)
	}))
	t.Cleanup(private.Close)
	n, host := emptyNode(t), private.Listener.Addr().String()
	n.StartPodman(t)
	good, bad := container.Credential{Username: "robot", Password: "hush-9471"}, container.Credential{Username: "robot", Password: "guess"}
	if _, err := n.Pull(t.Context(), host+"/app:1", []container.Credential{good}); !errors.Is(err, container.ErrRegistryUnavailable) || !strings.Contains(err.Error(), "certs.d/"+host+"/ca.crt") {
		t.Errorf("by an authority that nobody knows: %v", err)
	}
	certs := filepath.Join(n.Home, ".config/containers/certs.d", host)
	if err := os.MkdirAll(certs, 0o755); err != nil {
		t.Fatal(err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: private.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(certs, "ca.crt"), ca, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		credentials []container.Credential
		want        error
	}{
		"none": {nil, container.ErrUnauthorized}, "a wrong one": {[]container.Credential{bad}, container.ErrUnauthorized},
		"the second is right": {[]container.Credential{bad, good}, nil},
	} {
		_, err := n.Pull(t.Context(), host+"/app:1", tt.credentials)
		if !errors.Is(err, tt.want) || err != nil && !strings.Contains(err.Error(), "imagePullSecrets") {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), good.Password) {
			t.Errorf("%s: the error has the password: %v", name, err)
		}
	}
	for _, dir := range []string{n.Home, n.RuntimeDir} {
		out, _ := n.Command(t.Context(), "grep", "-rlsE", "hush-9471|cm9ib3Q6aHVzaC05NDcx", dir).Output() // plain, and as Basic has it
		if len(out) > 0 {
			t.Errorf("the password is in %s", out)
		}
	}
}
