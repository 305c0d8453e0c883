package e2e

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"bramble.dev/bramble/test/cluster"
)

const (
	soakPods = 30
	// What the last quarter's median may be above the second quarter's: memory
	// that a collector holds differs by this from one hour to the next.
	soakMemoryMiB, soakMemoryShare = 2.0, 0.15
	soakDescriptors                = 8
)

// TestSoak has 30 pods come and go on a node for BRAMBLE_SOAK, a duration that `make
// test-long` sets (without it there is no soak), with their logs followed and their statuses watched: the anonymous
// memory and the descriptors of the server, the agent, the network process and
// Podman's service stay what they were.
func TestSoak(t *testing.T) {
	text := os.Getenv("BRAMBLE_SOAK")
	if text == "" {
		return
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("BRAMBLE_SOAK: %v", err)
	}
	s := cluster.StartServer(t)
	n := s.StartNode(t, "soak")
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	c := &churn{client: s.Client()}
	var group sync.WaitGroup
	group.Go(func() { c.watch(ctx) })
	const workers = 3
	for w := range workers {
		group.Go(func() {
			for i := w; ctx.Err() == nil; i += workers {
				c.turn(ctx, t, i)
			}
		})
	}
	samples := map[string][]sample{}
	ticker := time.NewTicker(max(length/120, time.Second))
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
			take(t, samples, s, n)
		}
	}
	group.Wait()
	t.Logf("%v: %d pods made, %d events watched, %d bytes of logs followed", length, c.made.Load(), c.events.Load(), c.logged.Load())
	if c.made.Load() == 0 || c.events.Load() == 0 || c.logged.Load() == 0 {
		t.Error("the test tests nothing")
	}
	for name, all := range samples {
		flat(t, name, all, length >= 10*time.Minute) // before, the programs only get warm
	}
}

// churn is pods that come and go.
type churn struct {
	client               *kubernetes.Clientset
	made, events, logged atomic.Int64
}

// turn replaces the i-th pod, of which there are soakPods at a time, and follows
// the log of the new one for as long as it is there.
func (c *churn) turn(ctx context.Context, t *testing.T, i int) {
	pods, now := c.client.CoreV1().Pods("default"), int64(0)
	if i >= soakPods {
		old := fmt.Sprintf("soak-%d", i-soakPods)
		if err := pods.Delete(ctx, old, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil && ctx.Err() == nil {
			t.Errorf("%s: %v", old, err)
		}
	}
	name := fmt.Sprintf("soak-%d", i)
	_, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &now, Containers: []corev1.Container{{
			Name: "c", Image: cluster.TestImage, Command: []string{"sh", "-c", "while :; do date; sleep 5; done"},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		if ctx.Err() == nil {
			t.Errorf("%s: %v", name, err)
		}
		return
	}
	c.made.Add(1)
	for ctx.Err() == nil {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && pod.Status.Phase == corev1.PodRunning {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	go c.follow(ctx, name) // ends with the pod or ctx
}

func (c *churn) follow(ctx context.Context, name string) {
	stream, err := c.client.CoreV1().Pods("default").GetLogs(name, &corev1.PodLogOptions{Follow: true}).Stream(ctx)
	if err != nil {
		return
	}
	defer stream.Close()
	buf := make([]byte, 4096)
	for {
		read, err := stream.Read(buf)
		c.logged.Add(int64(read))
		if err == io.EOF || err != nil {
			return
		}
	}
}

// watch holds a watch of all pods.
func (c *churn) watch(ctx context.Context) {
	for ctx.Err() == nil {
		w, err := c.client.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{AllowWatchBookmarks: true})
		if err != nil {
			continue
		}
		for range w.ResultChan() {
			c.events.Add(1)
		}
	}
}

// sample is what a process has at a moment.
type sample struct{ anonymousMiB, descriptors float64 }

// take adds a sample of each process. Podman's service may be between two lives.
func take(t *testing.T, samples map[string][]sample, s *cluster.Server, n *cluster.Node) {
	t.Helper()
	pids := map[string]int{"bramble-server": s.PID(), "bramble-agent": n.PID()}
	for _, name := range []string{"bramble-network", "podman system service"} {
		if found, err := n.Running(name); err == nil && len(found) > 0 {
			pids[name] = found[0]
		}
	}
	for name, pid := range pids {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		open, err2 := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err != nil || err2 != nil {
			continue
		}
		now := sample{descriptors: float64(len(open))}
		for line := range strings.Lines(string(status)) {
			if text, found := strings.CutPrefix(line, "RssAnon:"); found {
				kB, _ := strconv.ParseFloat(strings.Fields(text)[0], 64)
				now.anonymousMiB = kB / 1024
			}
		}
		samples[name] = append(samples[name], now)
	}
}

// flat compares the medians of the second and of the last quarter; a growth beyond
// the tolerance fails the test where strict.
func flat(t *testing.T, name string, all []sample, strict bool) {
	t.Helper()
	if len(all) < 8 {
		t.Errorf("%s: only %d samples", name, len(all))
		return
	}
	middle := func(of []sample, value func(sample) float64) float64 {
		var values []float64
		for _, s := range of {
			values = append(values, value(s))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	quarter := len(all) / 4
	before, after := all[quarter:2*quarter], all[len(all)-quarter:]
	memory, descriptors := func(s sample) float64 { return s.anonymousMiB }, func(s sample) float64 { return s.descriptors }
	m0, m1, d0, d1 := middle(before, memory), middle(after, memory), middle(before, descriptors), middle(after, descriptors)
	t.Logf("%s: anonymous %.1f to %.1f MiB, descriptors %.0f to %.0f (medians of the second and the last quarter of %d samples)", name, m0, m1, d0, d1, len(all))
	if !strict {
		return
	}
	if m1 > m0+max(soakMemoryMiB, m0*soakMemoryShare) {
		t.Errorf("%s: memory grows", name)
	}
	if d1 > d0+soakDescriptors {
		t.Errorf("%s: descriptors grow", name)
	}
}
