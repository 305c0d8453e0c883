package bench

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"

	"bramble.dev/bramble/test/cluster"
)

// plainPod is a pod as people make them: a container with requests, labels and a
// variable or two.
func plainPod(name string) *corev1.Pod {
	zero := int64(0)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "bench", "tier": "web"}},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &zero, Containers: []corev1.Container{{
			Name: "c", Image: cluster.TestImage, Command: []string{"sleep", "1000000"},
			Env: []corev1.EnvVar{{Name: "MODE", Value: "bench"}, {Name: "NAME", Value: name}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi"),
			}},
		}}},
	}
}

// createPods makes pods through the API, 16 at a time.
func createPods(t *testing.T, client *kubernetes.Clientset, count int) {
	t.Helper()
	cluster.Each(t, count, func(ctx context.Context, i int) error {
		_, err := client.CoreV1().Pods("default").Create(ctx, plainPod(fmt.Sprintf("pod-%05d", i)), metav1.CreateOptions{})
		return err
	})
}

// waitRunning waits until all pods run.
func waitRunning(t *testing.T, client *kubernetes.Clientset) {
	t.Helper()
	cluster.Eventually(t, 5*time.Minute, func() string {
		list, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{FieldSelector: "status.phase!=Running", Limit: 1})
		if err != nil || len(list.Items) > 0 {
			return fmt.Sprintf("not all pods run: %v", err)
		}
		return ""
	})
}

// watchers are watches of all pods, each by a connection of its own.
type watchers struct{ bytes, ended atomic.Int64 }

// watchPods opens count watches, which end with t.
func watchPods(t *testing.T, s *cluster.Server, count int) *watchers {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var group sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		group.Wait()
	})
	w := &watchers{}
	for range count {
		config := restclient.CopyConfig(s.Config())
		config.Dial = (&net.Dialer{}).DialContext // a transport is shared, but for one with a dialer of its own
		client, err := restclient.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/api/v1/pods?watch=1&allowWatchBookmarks=1", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != http.StatusOK {
			t.Fatalf("watch: %s", response.Status)
		}
		group.Go(func() {
			_, _ = io.Copy(counter{&w.bytes}, response.Body) // until the watch ends
			_ = response.Body.Close()
			if ctx.Err() == nil {
				w.ended.Add(1)
			}
		})
	}
	return w
}

type counter struct{ bytes *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.bytes.Add(int64(len(p)))
	return len(p), nil
}
