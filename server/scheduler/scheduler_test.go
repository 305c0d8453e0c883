package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/scheduler"
)

// cluster is one in memory: what is put into it is told to the follower, and
// so is what the scheduler binds.
type cluster struct {
	mu     sync.Mutex
	pods   map[string]*corev1.Pod
	bound  []string // "pod node", in order
	tried  map[string][]time.Duration
	said   []string // "pod: message"
	events []string // "pod reason"

	evicted   []string
	evictions int
	fail      func(pod string, try int) error
	slow      time.Duration // how long a binding takes
	begin     time.Time
	feed      chan scheduler.Event
}

func newCluster() *cluster {
	return &cluster{pods: map[string]*corev1.Pod{}, tried: map[string][]time.Duration{}, begin: time.Now(), feed: make(chan scheduler.Event, 10_000)}
}

func (c *cluster) Follow(ctx context.Context, f func(scheduler.Event)) error {
	for {
		select {
		case e := <-c.feed:
			f(e)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *cluster) Pod(_ context.Context, _, name string) (*corev1.Pod, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.pods[name]; p != nil {
		return p, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, name)
}

func (c *cluster) Bind(ctx context.Context, p *corev1.Pod, node string) error {
	if c.slow > 0 {
		select {
		case <-time.After(c.slow):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tried[p.Name] = append(c.tried[p.Name], time.Since(c.begin))
	if c.fail != nil {
		if err := c.fail(p.Name, len(c.tried[p.Name])); err != nil {
			return err
		}
	}
	now := c.pods[p.Name]
	if now == nil || now.UID != p.UID || now.Spec.NodeName != "" {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, p.Name, errors.New("changed"))
	}
	now = now.DeepCopy()
	now.Spec.NodeName = node
	c.pods[p.Name] = now
	c.bound = append(c.bound, p.Name+" "+node)
	c.feed <- scheduler.Event{Pod: now}
	return nil
}

func (c *cluster) Unschedulable(_ context.Context, p *corev1.Pod, message, nominated string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.said = append(c.said, p.Name+": "+message)
	now := c.pods[p.Name].DeepCopy()
	now.Status.NominatedNodeName = nominated
	now.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message}}
	c.pods[p.Name] = now
	c.feed <- scheduler.Event{Pod: now}
	return nil
}

// Evict marks the pod; the test removes it.
func (c *cluster) Evict(_ context.Context, p *corev1.Pod) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail != nil {
		c.evictions++
		if err := c.fail(p.Name, c.evictions); err != nil {
			return err
		}
	}
	now := c.pods[p.Name].DeepCopy()
	now.DeletionTimestamp = &now.CreationTimestamp
	c.pods[p.Name] = now
	c.evicted = append(c.evicted, p.Name)
	c.feed <- scheduler.Event{Pod: now}
	return nil
}

func (c *cluster) Event(about runtime.Object, _, reason, _ string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, about.(*corev1.Pod).Name+" "+reason)
}

func (c *cluster) put(objects ...any) {
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Pod:
			c.mu.Lock()
			c.pods[o.Name] = o
			c.mu.Unlock()
			c.feed <- scheduler.Event{Pod: o}
		case *corev1.Node:
			c.feed <- scheduler.Event{Node: o}
		case *corev1.Namespace:
			c.feed <- scheduler.Event{Namespace: o}
		case *api.NodeHardware:
			c.feed <- scheduler.Event{Hardware: o}
		}
	}
}

func (c *cluster) remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.feed <- scheduler.Event{Pod: c.pods[name], Deleted: true}
	delete(c.pods, name)
}

func (c *cluster) synced() { c.feed <- scheduler.Event{Synced: true} }

// placements returns what is bound, sorted, and forgets it.
func (c *cluster) placements() []string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.bound
	c.bound = nil
	slices.Sort(got)
	return got
}

// run runs test beside a scheduler of c.
func run(t *testing.T, test func(t *testing.T, c *cluster, s *scheduler.Scheduler)) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		s := scheduler.New(scheduler.Config{Cluster: c, Recorder: c, Profile: profile()})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		test(t, c, s)
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
}

func expect(t *testing.T, c *cluster, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, c.placements()); diff != "" {
		t.Errorf("placements (-want +got):\n%s", diff)
	}
}

func TestNothingIsPlacedBeforeAllIsKnown(t *testing.T) {
	run(t, func(t *testing.T, c *cluster, _ *scheduler.Scheduler) {
		c.put(node("a", "cpu=1 memory=1Gi pods=9"), pod("p", "cpu=1"))
		time.Sleep(time.Minute)
		expect(t, c)
		c.put(pod("q", "cpu=1", on("a")), node("b", big))
		c.synced()
		expect(t, c, "p b")
	})
}

func TestAWaitingPodIsPlacedWhenThereIsRoom(t *testing.T) {
	for name, help := range map[string]func(c *cluster){
		"a pod leaves": func(c *cluster) { c.remove("q") },
		"a pod ends": func(c *cluster) {
			c.put(pod("q", "cpu=3", on("a"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }))
		},
		"the node grows":    func(c *cluster) { c.put(node("a", "cpu=8 memory=4Gi pods=110")) },
		"a node comes":      func(c *cluster) { c.put(node("a2", "cpu=2 memory=4Gi pods=110")) },
		"the pod asks less": func(c *cluster) { c.put(pod("p", "cpu=1")) },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, c *cluster, _ *scheduler.Scheduler) {
				c.put(node("a", big), pod("q", "cpu=3", on("a")), pod("p", "cpu=2"))
				c.synced()
				expect(t, c)
				if diff := cmp.Diff([]string{"p: 0/1 nodes fit: 1 had not enough CPU"}, c.said); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				time.Sleep(time.Minute)
				expect(t, c)
				help(c)
				if got := c.placements(); len(got) != 1 || !strings.HasPrefix(got[0], "p a") {
					t.Errorf("got %q", got)
				}
				if !slices.Equal(c.events, []string{"p FailedScheduling", "p Scheduled"}) || len(c.said) != 1 {
					t.Errorf("got events %q and conditions %q", c.events, c.said)
				}
			})
		})
	}
}

// A pod that a label keeps away is not tried again because another pod left.
func TestOnlyACauseThatHelpsWakesAPod(t *testing.T) {
	run(t, func(t *testing.T, c *cluster, s *scheduler.Scheduler) {
		c.put(node("a", big), pod("q", "", on("a")), pod("p", "", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "nvme"} }))
		c.synced()
		expect(t, c)
		before := decided(t, s, "p")
		time.Sleep(time.Minute)
		c.remove("q")
		same := node("a", big)
		same.Status.Images = []corev1.ContainerImage{{SizeBytes: 1}}
		c.put(same)
		time.Sleep(time.Minute)
		if after := decided(t, s, "p"); after != before {
			t.Errorf("tried again at %s", after)
		}
		labelled := node("a", big)
		labelled.Labels["disk"] = "nvme"
		c.put(labelled)
		expect(t, c, "p a")
	})
}

func decided(t *testing.T, s *scheduler.Scheduler, name string) string {
	t.Helper()
	p, err := s.Explain(t.Context(), "default", name)
	if err != nil {
		t.Fatal(err)
	}
	return p.Status.DecidedAt.String()
}

func TestABackOffBetweenTries(t *testing.T) {
	run(t, func(t *testing.T, c *cluster, _ *scheduler.Scheduler) {
		c.fail = func(_ string, try int) error {
			if try < 7 {
				return errors.New("disk full")
			}
			return nil
		}
		c.put(node("a", big), pod("p", ""))
		c.synced()
		time.Sleep(time.Hour)
		expect(t, c, "p a")
		want := []time.Duration{0, 1 * time.Second, 3 * time.Second, 7 * time.Second, 15 * time.Second, 25 * time.Second, 35 * time.Second}
		if diff := cmp.Diff(want, c.tried["p"]); diff != "" {
			t.Errorf("tries (-want +got):\n%s", diff)
		}
	})
}

// While bindings are under way, what they will take counts as taken; and when
// one fails, it is free again.
func TestAssumedPodsCount(t *testing.T) {
	run(t, func(t *testing.T, c *cluster, _ *scheduler.Scheduler) {
		c.slow = time.Second
		c.fail = func(name string, try int) error {
			if name == "p0" && try == 1 {
				return errors.New("not now")
			}
			return nil
		}
		c.put(node("a", "cpu=2 memory=4Gi pods=110"))
		for i := range 3 {
			c.put(pod(fmt.Sprint("p", i), "cpu=1"))
		}
		c.synced()
		time.Sleep(time.Minute)
		got := c.placements()
		if len(got) != 2 {
			t.Errorf("got %q, want two", got)
		}
	})
}

func TestAPodDeletedWhileItIsBound(t *testing.T) {
	run(t, func(t *testing.T, c *cluster, _ *scheduler.Scheduler) {
		c.slow = time.Second
		c.put(node("a", "cpu=1 memory=4Gi pods=110"), pod("p", "cpu=1"))
		c.synced()
		synctest.Wait()
		c.remove("p")
		c.put(pod("q", "cpu=1"))
		time.Sleep(time.Minute)
		expect(t, c, "q a")
	})
}

func TestAPodBoundByAnother(t *testing.T) {
	run(t, func(t *testing.T, c *cluster, _ *scheduler.Scheduler) {
		c.slow = time.Second
		c.put(node("a", "cpu=1 memory=4Gi pods=110"), node("b", "cpu=1 memory=4Gi pods=110", cordoned), pod("p", "cpu=1"))
		c.synced()
		synctest.Wait()
		c.put(pod("p", "cpu=1", on("b")), pod("q", "cpu=1"))
		time.Sleep(time.Minute)
		expect(t, c, "q a")
	})
}

func TestWhomItLeavesAlone(t *testing.T) {
	run(t, func(t *testing.T, c *cluster, _ *scheduler.Scheduler) {
		c.put(node("a", big),
			pod("other", "", func(p *corev1.Pod) { p.Spec.SchedulerName = "mine" }),
			pod("ended", "", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
			pod("deleted", "", func(p *corev1.Pod) { p.DeletionTimestamp = &p.CreationTimestamp }),
			pod("placed", "", on("a")),
		)
		c.synced()
		expect(t, c)
	})
}

func TestTheImportantAndTheEarlyFirst(t *testing.T) {
	run(t, func(t *testing.T, c *cluster, _ *scheduler.Scheduler) {
		seven := int32(7)
		c.put(pod("p1", "cpu=1"), pod("p2", "cpu=1"), pod("p3", "cpu=1", func(p *corev1.Pod) { p.Spec.Priority = &seven }))
		c.put(node("a", "cpu=2 memory=1Gi pods=9"))
		c.synced()
		expect(t, c, "p1 a", "p3 a")
	})
}

func TestExplain(t *testing.T) {
	run(t, func(t *testing.T, c *cluster, s *scheduler.Scheduler) {
		c.put(node("a", big), node("b", big, cordoned), node("c", "cpu=8 memory=8Gi pods=110"),
			pod("old", "cpu=8", on("c")), pod("p", "cpu=2 memory=1Gi"), pod("none", "cpu=9"))
		c.synced()
		expect(t, c, "p a")
		get := func(name string) *api.Placement {
			t.Helper()
			p, err := s.Explain(t.Context(), "default", name)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		p := get("p").Status
		if p.NodeName != "a" || p.Basis != api.PlacementDecision || p.NodesTotal != 3 || p.NodesFit != 1 ||
			p.Message != "placed on a, the only one that fits; 1/3 nodes fit: 1 had not enough CPU, 1 was cordoned" {
			t.Errorf("p: %+v", p)
		}
		want := []api.PlacementNode{
			{Name: "a", Fits: true, Score: 76, Scores: []api.PlacementScore{
				{Plugin: "LeastAllocated", Score: 63, Weight: 1, Detail: "50% of the CPU and 75% of the memory would stay free"},
				{Plugin: "BalancedAllocation", Score: 88, Weight: 1, Detail: "50% of the CPU and 25% of the memory would be used"},
			}},
			{Name: "b", Reasons: []string{"was cordoned"}},
			{Name: "c", Reasons: []string{"had not enough CPU"}},
		}
		if diff := cmp.Diff(want, p.Nodes); diff != "" {
			t.Errorf("nodes (-want +got):\n%s", diff)
		}
		if none := get("none").Status; none.NodeName != "" || none.Message != "0/3 nodes fit: 3 had not enough CPU, 1 was cordoned" {
			t.Errorf("none: %+v", none)
		}
		// The decision for this one was another's; its own requests do not count against it.
		old := get("old").Status
		if old.NodeName != "c" || old.Basis != api.PlacementNow || old.NodesFit != 1 ||
			!strings.HasPrefix(old.Message, "the pod is on c, and the decision is not known any more; if it were placed now: 1/3 nodes fit") {
			t.Errorf("old: %+v", old)
		}
		if _, err := s.Explain(t.Context(), "default", "nobody"); !apierrors.IsNotFound(err) {
			t.Errorf("got %v, want not found", err)
		}
	})
}

// What is kept of decisions is bounded by nodes too: with 40 of them the last 64 pods.
func TestDecisionsAreForgotten(t *testing.T) {
	run(t, func(t *testing.T, c *cluster, s *scheduler.Scheduler) {
		for i := range 40 {
			c.put(node(fmt.Sprintf("n%02d", i), big))
		}
		for i := range 65 {
			c.put(pod(fmt.Sprintf("p%02d", i), ""))
		}
		c.synced()
		synctest.Wait()
		known := 0
		for i := range 65 {
			p, err := s.Explain(t.Context(), "default", fmt.Sprintf("p%02d", i))
			if err != nil || len(p.Status.Nodes) != 32 || p.Status.NodesTotal != 40 {
				t.Fatalf("got %+v, %v", p, err)
			}
			if p.Status.Basis == api.PlacementDecision {
				known++
			}
		}
		if known != 64 {
			t.Errorf("%d decisions are known", known)
		}
	})
}

func TestExplainOfAPodThatTookAnothersName(t *testing.T) {
	run(t, func(t *testing.T, c *cluster, s *scheduler.Scheduler) {
		c.put(node("a", big), pod("p", "cpu=9"))
		c.synced()
		synctest.Wait()
		c.remove("p")
		c.put(pod("p", "cpu=1", func(p *corev1.Pod) { p.UID = types.UID("v") }))
		expect(t, c, "p a")
		p, err := s.Explain(t.Context(), "default", "p")
		if err != nil || p.Status.NodeName != "a" || p.Status.NodesFit != 1 {
			t.Errorf("got %+v, %v", p, err)
		}
	})
}

// What Follow says is the end of Run.
func TestFollowFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		s := scheduler.New(scheduler.Config{Cluster: failing{newCluster(), broken}, Recorder: newCluster()})
		if err := s.Run(t.Context()); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	})
}

type failing struct {
	*cluster
	err error
}

func (f failing) Follow(context.Context, func(scheduler.Event)) error { return f.err }

// A thousand pods on a hundred nodes: all are placed, none over-committed.
func TestManyPods(t *testing.T) {
	run(t, func(t *testing.T, c *cluster, _ *scheduler.Scheduler) {
		for i := range 100 {
			c.put(node(fmt.Sprintf("n%03d", i), "cpu=1 memory=1Gi pods=10"))
		}
		for i := range 1001 {
			c.put(pod(fmt.Sprintf("p%04d", i), "cpu=100m memory=64Mi"))
		}
		c.synced()
		time.Sleep(time.Minute)
		count := map[string]int{}
		for _, b := range c.placements() {
			_, n, _ := strings.Cut(b, " ")
			count[n]++
		}
		total := 0
		for n, k := range count {
			if total += k; k != 10 {
				t.Errorf("%s has %d pods", n, k)
			}
		}
		if total != 1000 {
			t.Errorf("%d pods are placed, want 1000", total)
		}
	})
}
