package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"bramble.dev/bramble/test/cluster"
)

// TestScheduling places 1,000 pods on 10, 100 and 1,000 nodes, through the API:
// from the first POST to the watch event of the last binding. Nothing stands behind
// the nodes, which the server is told to believe for an hour.
func TestScheduling(t *testing.T) {
	const pods = 1000
	for _, nodes := range []int{10, 100, 1000} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			s := cluster.StartServer(t, "--node-lease-timeout", "1h")
			client := s.Client()
			createNodes(t, client, nodes)
			rest(t, 2*time.Second)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			bound := cluster.WatchBound(ctx, t, client, pods)
			before, began := read(t, s.PID()), time.Now()
			createPods(t, client, pods)
			created := time.Since(began)
			select {
			case <-time.After(3 * time.Minute):
				t.Fatal("not all pods were bound in 3 minutes")
			case count := <-bound:
				if count != pods {
					t.Fatalf("the watch ended after %d pods", count)
				}
			}
			took, now := time.Since(began), read(t, s.PID())
			what := fmt.Sprintf("%d pods on %d nodes: ", pods, nodes)
			figure(t, what+"made and bound, through the API", pods/took.Seconds(), 0, "pods/s")
			figure(t, what+"from the last one's creation to the last binding", (took - created).Seconds(), 0, "s")
			figure(t, what+"server, processor for each", milliseconds(now.cpu-before.cpu)/pods, 0, "ms")
			figure(t, what+"server, resident", now.rssMiB, 0, "MiB")
		})
	}
}

// createNodes makes Ready nodes through the API.
func createNodes(t *testing.T, client *kubernetes.Clientset, count int) {
	t.Helper()
	has := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("1000"),
	}
	cluster.Each(t, count, func(ctx context.Context, i int) error {
		name := fmt.Sprintf("node-%04d", i)
		node, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%10)},
		}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		node.Status = corev1.NodeStatus{
			Capacity: has, Allocatable: has,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}},
		}
		_, err = client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
		return err
	})
}
