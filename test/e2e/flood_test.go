package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"bramble.dev/bramble/test/cluster"
)

// TestFloodOfLists has clients list 30 MB over and over, some that go away at
// once and some that never read: the server's memory stays bounded, and a node's
// heartbeats are answered in the meantime.
func TestFloodOfLists(t *testing.T) {
	const stored = 30 // MB
	s := cluster.StartServer(t)
	n := join(t, s, "shelf")
	const lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
	if code, status := n.send(t, http.MethodPost, lease, "application/json", `{"metadata":{"name":"shelf"}}`); code != http.StatusCreated {
		t.Fatalf("cannot make the lease: %d %s", code, status.Message)
	}
	for i := range stored * 2 {
		_, err := s.Client().CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("m%d", i)}, Data: map[string]string{"k": strings.Repeat("x", 500_000)},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithTimeout(t.Context(), 4*time.Second)
	defer stop()
	var flood sync.WaitGroup
	for i := range 24 {
		flood.Go(func() { lists(ctx, s, i%2 == 0) })
	}
	beats := 0
	for ; ctx.Err() == nil; beats++ {
		began := time.Now()
		code, status := n.send(t, http.MethodPatch, lease+"/shelf", "application/merge-patch+json", fmt.Sprintf(`{"spec":{"leaseTransitions":%d}}`, beats))
		if took := time.Since(began); code != http.StatusOK || took > 2*time.Second {
			t.Errorf("a heartbeat was answered %d %s after %v", code, status.Message, took)
		}
	}
	rss := residentMiB(t, s.PID())
	flood.Wait()
	t.Logf("%d heartbeats; %d MiB resident under the flood", beats, rss)
	if rss > 4*stored+100 {
		t.Errorf("%d MiB resident, of which %d MB are stored", rss, stored)
	}
}

// lists lists until ctx ends, on connections of its own.
func lists(ctx context.Context, s *cluster.Server, away bool) {
	client, err := rest.HTTPClientFor(rest.CopyConfig(s.Config()))
	if err != nil {
		return
	}
	defer client.CloseIdleConnections()
	for ctx.Err() == nil {
		once, cancel := context.WithCancel(ctx)
		if req, err := http.NewRequestWithContext(once, http.MethodGet, s.Config().Host+"/api/v1/configmaps", nil); err == nil {
			if resp, err := client.Do(req); err == nil {
				if !away {
					<-ctx.Done() // reads nothing
				}
				_ = resp.Body.Close()
			}
		}
		cancel()
	}
}

func residentMiB(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	var kB int
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	if _, err := fmt.Sscan(rest, &kB); err != nil {
		t.Fatal(err)
	}
	return kB / 1024
}
