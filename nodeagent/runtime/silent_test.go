package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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
	host := r.Listener.Addr().String()
	n, fetching := fetchingNode(t, host, nil)
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

// fetchingNode is a node whose Podman fetches into a folder that is known, from the
// registry of that address.
func fetchingNode(t *testing.T, host string, prepare func(n *node, fetching string)) (n *node, fetching string) {
	t.Helper()
	n = emptyNode(t)
	fetching = filepath.Join(n.Home, "fetching")
	conf := filepath.Join(n.Home, ".config/containers/registries.conf")
	if err := os.WriteFile(conf, []byte("[[registry]]\nlocation = \""+host+"\"\ninsecure = true\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	n.mkdir(t, filepath.Dir(n.PodmanSocket()))
	n.mkdir(t, fetching)
	if prepare != nil {
		prepare(n, fetching)
	}
	up, _ := n.serve(t, func(s *runtime.Service) { s.TempDir = fetching })
	n.awaitUp(t, up)
	return n, fetching
}

// TestStallBesideAnother: a pull that stalls is given up, though others that began with
// it move on.
func TestStallBesideAnother(t *testing.T) {
	t.Parallel()
	const stall = 1600 * time.Millisecond
	r := layerOf(t, map[string]func(http.ResponseWriter, *http.Request, []byte){
		"half": func(w http.ResponseWriter, q *http.Request, layer []byte) {
			_, _ = w.Write(layer[:len(layer)/2])
			_ = http.NewResponseController(w).Flush()
			<-q.Context().Done()
		},
		"moves": func(w http.ResponseWriter, q *http.Request, layer []byte) {
			sent := len(layer) / 2
			_, _ = w.Write(layer[:sent])
			for ; sent < len(layer); sent++ {
				_ = http.NewResponseController(w).Flush()
				select {
				case <-q.Context().Done():
					return
				case <-time.After(stall / 5):
				}
				_, _ = w.Write(layer[sent : sent+1])
			}
		},
	})
	host := r.Listener.Addr().String()
	n, fetching := fetchingNode(t, host, nil)
	hasty := n.with(t, func(c *runtime.Config) { c.FetchDir, c.FetchStall = fetching, stall })
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
	defer cancel()
	var others sync.WaitGroup
	for i := range 3 {
		others.Go(func() {
			if _, err := hasty.Pull(ctx, fmt.Sprintf("%s/moves/app:%d", host, i), nil); err == nil || ctx.Err() == nil {
				t.Errorf("one that moves ended: %v", err)
			}
		})
	}
	for range 2 {
		if _, err := hasty.Pull(ctx, host+"/half/app:1", nil); !errors.Is(err, container.ErrRegistryUnavailable) || !strings.Contains(err.Error(), "check the link between this node and "+host) {
			t.Errorf("beside others: %v", err)
		}
	}
	cancel()
	others.Wait()
}

// TestEndlessLayer pulls from a registry that sends a layer without an end: the pull is
// given up while the disk has room for others.
func TestEndlessLayer(t *testing.T) {
	t.Parallel()
	const disk, piece = 64 << 20, 256 << 10
	r := layerOf(t, map[string]func(http.ResponseWriter, *http.Request, []byte){
		"endless": func(w http.ResponseWriter, q *http.Request, layer []byte) {
			w.Header().Del("Content-Length")
			for {
				select {
				case <-q.Context().Done():
					return
				case <-time.After(20 * time.Millisecond):
				}
				if _, err := w.Write(make([]byte, piece)); err != nil {
					return
				}
			}
		},
	})
	host := r.Listener.Addr().String()
	n, fetching := fetchingNode(t, host, func(n *node, fetching string) {
		if err := unix.Mount("tmpfs", fetching, "tmpfs", 0, fmt.Sprintf("size=%d,uid=%d,mode=700", disk, n.UID)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(fetching, unix.MNT_DETACH) })
		if out, err := n.Command(t.Context(), "podman", "system", "migrate").CombinedOutput(); err != nil { // its mount namespace is older
			t.Fatalf("%v: %s", err, out)
		}
	})
	careful := n.with(t, func(c *runtime.Config) { c.FetchDir, c.FetchStall = fetching, 2*time.Second })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := careful.Pull(ctx, host+"/endless/app:1", nil)
	if !errors.Is(err, container.ErrNoRoom) || !strings.Contains(err.Error(), "see what "+host+" sends") {
		t.Errorf("an endless layer: %v", err)
	}
	cluster.Eventually(t, 10*time.Second, func() string {
		if left, err := os.ReadDir(fetching); err != nil || len(left) > 0 {
			return fmt.Sprintf("after the pull there are %v, %v", left, err)
		}
		return ""
	})
}
