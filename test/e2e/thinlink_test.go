package e2e

import (
	"context"
	"crypto/rand"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"bramble.dev/bramble/test/cluster"
)

const (
	thinRate   = 256_000 / 8 // bytes a second each way
	thinPacket = 1400
)

// TestCopyOverAThinLinkDelaysNoLease copies through a node's link of 256 kbit/s,
// which the copy fills: leases are renewed on time, nobody takes the node for
// lost, and the copy arrives whole.
func TestCopyOverAThinLinkDelaysNoLease(t *testing.T) {
	t.Parallel()
	s := cluster.StartServer(t)
	thin := startThinLink(t, s.Address)
	through := *s
	through.NodeAddress = thin.Addr().String()
	through.StartNode(t, "thin")
	s.Apply(`
apiVersion: v1
kind: Pod
metadata: {name: store}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: "` + cluster.TestImage + `", command: [sleep, "100000"]}]
`)
	s.WaitFor("condition=Ready", "pod/store")
	size := number(t, "BRAMBLE_THIN_KB", 800) * 1000
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
	thin.shaped.Store(true)
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
	thin.shaped.Store(false)
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

// thinLink passes connections on to a server; while it is shaped, all of them
// share thinRate each way, packet by packet.
type thinLink struct {
	net.Listener
	shaped atomic.Bool
}

func startThinLink(t *testing.T, to string) *thinLink {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	thin := &thinLink{Listener: l}
	var up, down lane
	t.Cleanup(func() { t.Logf("up %d down %d", up.passed, down.passed) })
	var group sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); l.Close(); group.Wait() })
	group.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			conn, err := net.Dial("tcp", to)
			if err != nil {
				from.Close()
				continue
			}
			for _, c := range []net.Conn{from, conn} { // a link holds little
				_ = c.(*net.TCPConn).SetReadBuffer(64 << 10)
				_ = c.(*net.TCPConn).SetWriteBuffer(64 << 10)
				context.AfterFunc(ctx, func() { c.Close() })
			}
			group.Go(func() { thin.pass(ctx, conn, from, &up) })
			group.Go(func() { thin.pass(ctx, from, conn, &down) })
		}
	})
	return thin
}

func (l *thinLink) pass(ctx context.Context, to, from net.Conn, lane *lane) {
	defer to.Close()
	defer from.Close()
	packet := make([]byte, thinPacket)
	for {
		n, err := from.Read(packet)
		if n > 0 && l.shaped.Load() {
			lane.take(ctx, n)
		}
		if _, failed := to.Write(packet[:n]); err != nil || failed != nil {
			return
		}
	}
}

// lane is one way of a link.
type lane struct {
	mu     sync.Mutex // protects free
	free   time.Time  // when the packets before have passed
	passed int
}

func (l *lane) take(ctx context.Context, n int) {
	l.mu.Lock()
	now := time.Now()
	if l.free.Before(now) {
		l.free = now
	}
	l.passed += n
	l.free = l.free.Add(time.Duration(n) * time.Second / thinRate)
	timer := time.NewTimer(l.free.Sub(now))
	l.mu.Unlock()
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
