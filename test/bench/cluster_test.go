package bench

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/test/cluster"
	"bramble.dev/bramble/test/hollow"
)

// TestLargeCluster is 100 hollow nodes with 1,000 pods, watched by 100 watchers:
// the server's memory then and at its most, and what it uses while nothing but
// heartbeats happens.
func TestLargeCluster(t *testing.T) {
	const nodes, pods, watches = 100, 1000, 100
	s := cluster.StartServer(t)
	fleet := hollow.Start(t, s, nodes)
	w := watchPods(t, s, watches)
	client := s.Client()
	began := time.Now()
	createPods(t, client, pods)
	waitRunning(t, client)
	what := fmt.Sprintf("%d nodes, %d pods, %d watchers: ", nodes, pods, watches)
	figure(t, what+"all pods from POST to Running", time.Since(began).Seconds(), 0, "s")
	rest(t, 5*time.Second)
	u := read(t, s.PID())
	figure(t, fmt.Sprintf("%sserver, resident (%.1f MiB of it anonymous)", what, u.anonMiB), u.rssMiB, 48, "MiB")
	figure(t, what+"server, resident at its most, while the pods were made", u.peakMiB, 0, "MiB")
	quiet(t, s, fleet, what)
	for range 5 {
		if _, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	figure(t, what+"server, resident after 5 full lists", read(t, s.PID()).rssMiB, 48, "MiB")
	if ended := w.ended.Load(); ended > 0 {
		t.Errorf("%d watches ended", ended)
	}
}

// TestIdleCluster is the idle cluster of the budgets: 10 nodes and 20 pods.
func TestIdleCluster(t *testing.T) {
	const nodes, pods = 10, 20
	s := cluster.StartServer(t)
	fleet := hollow.Start(t, s, nodes)
	client := s.Client()
	createPods(t, client, pods)
	waitRunning(t, client)
	rest(t, 5*time.Second)
	percent := quiet(t, s, fleet, fmt.Sprintf("%d nodes, %d pods: ", nodes, pods))
	if percent > 1 {
		t.Errorf("the server used %.3g %% of a core while idle, the budget is 1 %%", percent)
	}
}

// quiet lets the cluster rest for a minute, and returns what percentage of a core
// the server used. Every node must have been heard, and no byte written.
func quiet(t *testing.T, s *cluster.Server, fleet *hollow.Fleet, what string) (percent float64) {
	t.Helper()
	const length = time.Minute
	before, heard := read(t, s.PID()), fleet.Renewals()
	rest(t, length)
	now := read(t, s.PID())
	if count := fleet.Renewed(heard); count != len(fleet.Nodes) {
		t.Errorf("%d of %d nodes were heard in %v", count, len(fleet.Nodes), length)
	}
	written := now.writtenKB - before.writtenKB
	percent = 100 * float64(now.cpu-before.cpu) / float64(length)
	figure(t, what+"server, processor while idle", percent, 0, "%")
	figure(t, what+"server, written while idle for a minute", written, 0, "kB")
	if written > 0 {
		t.Errorf("heartbeats of %d nodes wrote %.1f kB in %v", len(fleet.Nodes), written, length)
	}
	return percent
}
