package cluster

import (
	"context"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Each calls do for 0 to count-1, 16 at a time, and ends the test when one fails.
func Each(t testing.TB, count int, do func(ctx context.Context, i int) error) {
	t.Helper()
	const workers = 16
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for i := w; i < count; i += workers {
				if err := do(t.Context(), i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// WatchBound tells when count pods of the namespace default have a node; or how many
// had one when ctx or the watch ended.
func WatchBound(ctx context.Context, t testing.TB, client *kubernetes.Clientset, count int) <-chan int {
	t.Helper()
	watch, err := client.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bound := make(chan int, 1)
	go func() { // ends with the watch, or when all are bound
		seen := map[string]bool{}
		for event := range watch.ResultChan() {
			if p, ok := event.Object.(*corev1.Pod); ok && p.Spec.NodeName != "" {
				seen[p.Name] = true
			}
			if len(seen) == count {
				break
			}
		}
		bound <- len(seen)
	}()
	return bound
}
