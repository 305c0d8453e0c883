package e2e

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"bramble.dev/bramble/test/cluster"
)

const (
	thinRate = 256_000 / 8 // what a thin link carries each way, in bytes a second
	patience = 61          // for how many seconds kubectl waits for an answer to its pings
)

// TestCopyOverAThinLinkDelaysNoLease copies through a node's link of 256 kbit/s,
// which the copy fills: leases are renewed on time, nobody takes the node for
// lost, and the copy arrives whole.
func TestCopyOverAThinLinkDelaysNoLease(t *testing.T) {
	t.Parallel()
	hosts := cluster.NewHosts(t)
	s := cluster.StartServerOn(t, hosts)
	s.StartNodeOn(t, "thin", hosts.Add())
	s.Apply(`
apiVersion: v1
kind: Pod
metadata: {name: store}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: "` + cluster.TestImage + `", command: [sleep, "100000"]}]
`)
	s.WaitFor("condition=Ready", "pod/store")
	size := number(t, "BRAMBLE_THIN_KB", 400) * 1000
	data := make([]byte, size)
	_, _ = rand.Read(data)
	file := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	longest := make(chan time.Duration, 1)
	watching := make(chan struct{})
	go func() { longest <- longestGap(ctx, t, s, watching) }()
	<-watching
	hosts.Thin("256kbit")
	began := time.Now()
	program := filepath.Join(cluster.Programs(t), "kubectl")
	_, err := s.Kubectl(program, "", "cp", file, "store:/tmp/data")
	took := time.Since(began)
	cancel()
	gap := <-longest
	t.Logf("%d kB took %v; the longest time between two renewals was %v", size/1000, took, gap)
	if err != nil {
		t.Errorf("the copy: %v", err)
	}
	if least := time.Duration(size/thinRate) * time.Second * 9 / 10; took < least {
		t.Errorf("%d bytes took %v, less than the link allows (%v): the link is not thin", size, took, least)
	}
	if gap > 13*time.Second {
		t.Errorf("two renewals, 10 s apart, were %v apart", gap)
	}
	if size < patience*thinRate || size > 20_000_000 {
		hosts.Wide() // the way back takes as long
	}
	if _, err := s.Kubectl(program, "", "cp", "store:/tmp/data", file+"2"); err != nil {
		t.Fatal(err)
	}
	if back, err := os.ReadFile(file + "2"); err != nil || string(back) != string(data) {
		t.Errorf("it comes back as %d bytes, %v", len(back), err)
	}
}

// longestGap watches the node's lease and returns the longest time in which
// nothing came of it, until ctx ends.
func longestGap(ctx context.Context, t *testing.T, s *cluster.Server, watching chan<- struct{}) (longest time.Duration) {
	w, err := s.Client().CoordinationV1().Leases("kube-node-lease").Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", "thin").String(),
	})
	close(watching)
	if err != nil {
		t.Errorf("cannot watch the lease: %v", err)
		return 0
	}
	defer w.Stop()
	last := time.Now()
	for {
		select {
		case _, open := <-w.ResultChan():
			if !open {
				return longest
			}
			longest = max(longest, time.Since(last))
			last = time.Now()
		case <-ctx.Done():
			return max(longest, time.Since(last))
		}
	}
}
