package runtime_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/runtime"
	"bramble.dev/bramble/test/cluster"
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

// layerOf has the layers of registry's images served in a manner of the name's own.
func layerOf(t *testing.T, manners map[string]func(w http.ResponseWriter, q *http.Request, layer []byte)) *httptest.Server {
	t.Helper()
	plain := registry(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		answer := httptest.NewRecorder()
		plain.Config.Handler.ServeHTTP(answer, q)
		name, _, _ := strings.Cut(strings.TrimPrefix(q.URL.Path, "/v2/"), "/")
		manner, body := manners[name], answer.Body.Bytes()
		if manner == nil || !strings.Contains(q.URL.Path, "/blobs/") || bytes.HasPrefix(body, []byte("{")) {
			plain.Config.Handler.ServeHTTP(w, q)
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		manner(w, q, body)
	}))
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	return s
}

// TestStalledRegistry pulls from registries that stop in the middle of a layer, and
// before it: the pull ends. From one that is slow it goes on.
func TestStalledRegistry(t *testing.T) {
	t.Parallel()
	const stall = 1600 * time.Millisecond
	drip := func(w http.ResponseWriter, q *http.Request, layer []byte) {
		for piece := range slices.Chunk(layer, len(layer)/6) {
			select {
			case <-q.Context().Done():
				return
			case <-time.After(stall / 3):
			}
			_, _ = w.Write(piece)
			_ = http.NewResponseController(w).Flush()
		}
	}
	r := layerOf(t, map[string]func(http.ResponseWriter, *http.Request, []byte){
		"half": func(w http.ResponseWriter, q *http.Request, layer []byte) {
			_, _ = w.Write(layer[:len(layer)/2])
			_ = http.NewResponseController(w).Flush()
			<-q.Context().Done()
		},
		"none": func(_ http.ResponseWriter, q *http.Request, _ []byte) { <-q.Context().Done() },
		"slow": drip,
	})
	n, host := emptyNode(t), r.Listener.Addr().String()
	conf, fetching := filepath.Join(n.Home, ".config/containers/registries.conf"), filepath.Join(n.Home, "fetching")
	if err := os.WriteFile(conf, []byte("[[registry]]\nlocation = \""+host+"\"\ninsecure = true\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	n.mkdir(t, filepath.Dir(n.PodmanSocket()))
	n.mkdir(t, fetching)
	up, _ := n.serve(t, func(s *runtime.Service) { s.TempDir = fetching })
	n.awaitUp(t, up)
	hasty := n.with(t, func(c *runtime.Config) { c.FetchDir, c.FetchStall = fetching, stall })
	for _, name := range []string{"half", "none"} {
		began := time.Now()
		_, err := hasty.Pull(t.Context(), host+"/"+name+"/app:1", nil)
		if took := time.Since(began); !errors.Is(err, container.ErrRegistryUnavailable) || took > 30*time.Second || !strings.Contains(err.Error(), "check the link between this node and "+host) {
			t.Errorf("%s: after %v: %v", name, took, err)
		}
	}
	if _, err := hasty.Pull(t.Context(), host+"/slow/app:1", nil); err != nil {
		t.Errorf("a slow registry: %v", err)
	}
	cluster.Eventually(t, 10*time.Second, func() string {
		if left, err := os.ReadDir(fetching); err != nil || len(left) > 0 {
			return fmt.Sprintf("after the pulls there are %v, %v", left, err)
		}
		return ""
	})
}
