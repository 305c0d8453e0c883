package runtime_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/runtime"
)

// TestSilentRegistry pulls from a registry that takes connections and never
// answers: the pull ends.
func TestSilentRegistry(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() }))
	t.Cleanup(silent.Close)
	t.Cleanup(silent.CloseClientConnections)
	n, host := emptyNode(t), silent.Listener.Addr().String()
	conf := filepath.Join(n.Home, ".config/containers/registries.conf")
	if err := os.WriteFile(conf, []byte("[[registry]]\nlocation = \""+host+"\"\ninsecure = true\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	n.StartPodman(t)
	hasty := n.with(t, func(c *runtime.Config) { c.RegistryAnswer = 2 * time.Second })
	began := time.Now()
	_, err := hasty.Pull(t.Context(), host+"/app:1", nil)
	if took := time.Since(began); !errors.Is(err, container.ErrRegistryUnavailable) || took > 10*time.Second {
		t.Errorf("after %v: %v", took, err)
	}
}
