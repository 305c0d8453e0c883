package hollow

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"bramble.dev/bramble/test/cluster"
)

const joining = 8 // at once

// Fleet is the hollow nodes of one server.
type Fleet struct {
	Nodes  []*Node
	client *kubernetes.Clientset
}

// Start joins count nodes, named hollow-0000 and so on, and returns when all are
// Ready. They end with t.
func Start(t testing.TB, s *cluster.Server, count int) *Fleet {
	t.Helper()
	f := &Fleet{Nodes: make([]*Node, count), client: s.Client()}
	token := s.Token("--uses", fmt.Sprint(count))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	var group sync.WaitGroup
	for worker := range joining {
		group.Go(func() {
			for i := worker; i < count; i += joining {
				node, err := Join(ctx, s.NodeAddress, token, fmt.Sprintf("hollow-%04d", i))
				if err != nil {
					t.Error(err)
					return
				}
				f.Nodes[i] = node
				running.Go(func() { node.Run(ctx) })
			}
		})
	}
	group.Wait()
	if t.Failed() {
		t.FailNow()
	}
	cluster.Eventually(t, 2*time.Minute, func() string {
		if heard := f.Renewed(make([]int64, count)); heard != count { // this costs the server nothing
			return fmt.Sprintf("%d of %d nodes were heard", heard, count)
		}
		if ready := f.Ready(t); ready != count {
			return fmt.Sprintf("%d of %d nodes are Ready", ready, count)
		}
		return ""
	})
	return f
}

// Ready counts the nodes that the server has as Ready.
func (f *Fleet) Ready(t testing.TB) int {
	t.Helper()
	list, err := f.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return 0 // the server is away
	}
	ready := 0
	for _, n := range list.Items {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				ready++
			}
		}
	}
	return ready
}

// Renewals is how often each node's lease was renewed.
func (f *Fleet) Renewals() []int64 {
	all := make([]int64, len(f.Nodes))
	for i, n := range f.Nodes {
		all[i] = n.Renewals()
	}
	return all
}

// Renewed counts the nodes whose lease was renewed since before, which is an
// answer of Renewals.
func (f *Fleet) Renewed(before []int64) int {
	count := 0
	for i, now := range f.Renewals() {
		if now > before[i] {
			count++
		}
	}
	return count
}
