package bench

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/test/cluster"
)

// TestWrites measures what a change of a 2.5 kB object costs the disk and how
// many the server takes a second, through its API, with 1 and 16 writers.
func TestWrites(t *testing.T) {
	s := cluster.StartServer(t)
	configMaps := s.Client().CoreV1().ConfigMaps("default")
	body := func(i int) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%d", i)},
			Data:       map[string]string{"filling": strings.Repeat("x", 2300), "at": fmt.Sprint(time.Now().UnixNano())},
		}
	}
	const objects = 1000
	for i := range objects {
		if _, err := configMaps.Create(t.Context(), body(i), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, writers := range []int{1, 16} {
		const changes = 2000
		before, began := read(t, s.PID()), time.Now()
		var group sync.WaitGroup
		for w := range writers {
			group.Go(func() {
				for i := w; i < changes; i += writers {
					if _, err := configMaps.Update(t.Context(), body(i%objects), metav1.UpdateOptions{}); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		group.Wait()
		took := time.Since(began)
		written := read(t, s.PID()).writtenKB - before.writtenKB
		figure(t, fmt.Sprintf("written for a change of 2.5 kB, %d writers", writers), written/changes, 0, "kB")
		figure(t, fmt.Sprintf("changes a second through the API, %d writers", writers), changes/took.Seconds(), 0, "/s")
	}
	figure(t, "server, resident after 1,000 objects and 5,000 writes", read(t, s.PID()).rssMiB, 48, "MiB")
}
