package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bramble.dev/bramble/server/nodes"
)

// cluster is one in memory, with revisions. What is written is told to the
// follower.
type cluster struct {
	mu     sync.Mutex
	rev    int
	nodes  map[string]*corev1.Node
	feed   chan nodes.Event
	writes int
	fail   error
	events []string
	block  time.Duration // how long the Recorder blocks, as it must not
}

func newCluster() *cluster {
	return &cluster{nodes: map[string]*corev1.Node{}, feed: make(chan nodes.Event, 10_000)}
}

func (c *cluster) Follow(ctx context.Context, f func(nodes.Event)) error {
	for {
		select {
		case e := <-c.feed:
			f(e)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *cluster) ChangeStatus(_ context.Context, name string, change func(*corev1.Node)) error {
	return c.change(name, func(n *corev1.Node) {
		taints := n.Spec.Taints
		change(n)
		n.Spec.Taints = taints
	})
}

func (c *cluster) ChangeNode(_ context.Context, name string, change func(*corev1.Node)) error {
	return c.change(name, func(n *corev1.Node) {
		status := n.Status.DeepCopy()
		change(n)
		n.Status = *status
	})
}

func (c *cluster) change(name string, change func(*corev1.Node)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail != nil {
		return c.fail
	}
	n := c.nodes[name].DeepCopy()
	change(n)
	if cmp.Equal(n, c.nodes[name]) {
		return nil
	}
	c.writes++
	c.putLocked(n)
	return nil
}

func (c *cluster) putLocked(n *corev1.Node) {
	c.rev++
	n.ResourceVersion = strconv.Itoa(c.rev)
	c.nodes[n.Name] = n
	c.feed <- nodes.Event{Node: n}
}

func (c *cluster) Event(about runtime.Object, _, reason, _ string) {
	c.mu.Lock()
	block := c.block
	c.mu.Unlock()
	time.Sleep(block)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, about.(*corev1.Node).Name+" "+reason)
}

func (c *cluster) set(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// report is what a node's agent does.
func (c *cluster) report(name string, ready corev1.ConditionStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[name].DeepCopy()
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Reason: "KubeletReady"}, {Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse}}
	c.putLocked(n)
}

func (c *cluster) create(name string, ready corev1.ConditionStatus) {
	c.mu.Lock()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.putLocked(n)
	c.mu.Unlock()
	if ready != "" {
		c.report(name, ready)
	}
}

func (c *cluster) renew(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rev++
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: strconv.Itoa(c.rev)}}
	wrong := metav1.NewMicroTime(time.Unix(int64(c.rev%2)*4e9, 0)) // 1970 or 2096: no matter
	l.Spec.RenewTime = &wrong
	c.feed <- nodes.Event{Lease: l}
}

func (c *cluster) synced() { c.feed <- nodes.Event{Synced: true} }

// state is a node as `kubectl describe` shows it.
func (c *cluster) state(name string) string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[name]
	s := ""
	for _, cond := range n.Status.Conditions {
		s += fmt.Sprintf("%s=%s ", cond.Type, cond.Status)
	}
	var taints []string
	for _, t := range n.Spec.Taints {
		taints = append(taints, t.ToString())
	}
	slices.Sort(taints)
	return s + fmt.Sprint(taints)
}

const (
	reachable = "Ready=True DiskPressure=False []"
	gone      = "Ready=Unknown DiskPressure=Unknown [node.kubernetes.io/unreachable:NoExecute node.kubernetes.io/unreachable:NoSchedule]"
	unheard   = "Ready=Unknown DiskPressure=Unknown [node.kubernetes.io/unreachable:NoSchedule]"
)

func run(t *testing.T, c *cluster, test func(w *nodes.Watcher)) {
	t.Helper()
	w := nodes.New(nodes.Config{Cluster: c, Recorder: c})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	test(w)
	stop()
	if err := <-done; err != nil {
		t.Errorf("Run returned %v", err)
	}
}

func expect(t *testing.T, c *cluster, when, name, want string) {
	t.Helper()
	if got := c.state(name); got != want {
		t.Errorf("%s: %s is\n  %s, want\n  %s", when, name, got, want)
	}
}

func expectEvents(t *testing.T, c *cluster, want ...string) {
	t.Helper()
	if !slices.Equal(c.events, want) {
		t.Errorf("got events %q, want %q", c.events, want)
	}
}

func TestANodeIsLostAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.create("a", corev1.ConditionTrue)
		c.renew("a")
		c.synced()
		run(t, c, func(*nodes.Watcher) {
			for range 20 {
				expect(t, c, "renewed", "a", reachable)
				time.Sleep(10 * time.Second)
				c.renew("a")
			}
			time.Sleep(39 * time.Second)
			expect(t, c, "after 39 s", "a", reachable)
			time.Sleep(2 * time.Second)
			expect(t, c, "after 41 s", "a", gone)
			time.Sleep(time.Hour)
			expect(t, c, "after an hour", "a", gone)
			if c.writes != 2 {
				t.Errorf("%d writes, want 2", c.writes)
			}
			c.renew("a")
			expect(t, c, "heard, and nothing said", "a", unheard)
			c.report("a", corev1.ConditionTrue)
			expect(t, c, "back", "a", reachable)
			expectEvents(t, c, "a NodeNotReady", "a NodeReady")
		})
	})
}

func TestAfterAStartOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.create("a", corev1.ConditionTrue)
		c.create("b", corev1.ConditionTrue)
		c.create("heard", corev1.ConditionTrue)
		c.renew("heard")
		run(t, c, func(w *nodes.Watcher) {
			expect(t, c, "before all is known", "a", reachable)
			c.synced()
			<-w.Settled()
			expect(t, c, "at the start", "a", unheard)
			expect(t, c, "at the start", "heard", reachable)
			time.Sleep(20 * time.Second)
			c.renew("a")
			c.renew("heard")
			c.report("a", corev1.ConditionTrue)
			expect(t, c, "heard", "a", reachable)
			time.Sleep(19 * time.Second)
			expect(t, c, "after 39 s", "b", unheard)
			time.Sleep(2 * time.Second)
			expect(t, c, "after 41 s", "b", gone)
			expect(t, c, "after 41 s", "a", reachable)
			expectEvents(t, c, "b NodeNotReady")
		})
	})
}

// A loss that began before the server was restarted goes on, with its time.
func TestALossOutlivesTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.create("a", corev1.ConditionTrue)
		c.synced()
		run(t, c, func(*nodes.Watcher) {
			time.Sleep(time.Minute)
			expect(t, c, "lost", "a", gone)
		})
		before := c.nodes["a"].Spec.Taints[0].TimeAdded
		c.feed = make(chan nodes.Event, 100)
		c.feed <- nodes.Event{Node: c.nodes["a"]}
		c.synced()
		writes := c.writes
		run(t, c, func(*nodes.Watcher) {
			expect(t, c, "at the start", "a", gone)
			time.Sleep(time.Hour)
			expect(t, c, "an hour later", "a", gone)
		})
		if !c.nodes["a"].Spec.Taints[0].TimeAdded.Equal(before) || c.writes != writes {
			t.Errorf("the taint was written again (%d writes)", c.writes-writes)
		}
	})
}

func TestANewNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.synced()
		run(t, c, func(*nodes.Watcher) {
			c.create("a", "")
			expect(t, c, "created", "a", "[node.kubernetes.io/not-ready:NoSchedule]")
			time.Sleep(30 * time.Second)
			c.renew("a")
			c.report("a", corev1.ConditionFalse)
			expect(t, c, "its engine is away", "a", "Ready=False DiskPressure=False [node.kubernetes.io/not-ready:NoExecute node.kubernetes.io/not-ready:NoSchedule]")
			c.report("a", corev1.ConditionTrue)
			expect(t, c, "ready", "a", reachable)
			time.Sleep(time.Second)
			c.create("silent", "")
			time.Sleep(39 * time.Second)
			expect(t, c, "39 s", "silent", "[node.kubernetes.io/not-ready:NoSchedule]")
			time.Sleep(2 * time.Second)
			expect(t, c, "41 s", "silent", "Ready=Unknown [node.kubernetes.io/unreachable:NoExecute node.kubernetes.io/unreachable:NoSchedule]")
			if r := c.nodes["silent"].Status.Conditions[0].Reason; r != "NodeStatusNeverUpdated" {
				t.Errorf("the reason is %s", r)
			}
			expectEvents(t, c, "a NodeNotReady", "a NodeReady", "a NodeNotReady", "silent NodeNotReady")
		})
	})
}

func TestTaintsOfOthersStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.create("a", corev1.ConditionTrue)
		mine := c.nodes["a"].DeepCopy()
		mine.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: "NoSchedule"}, {Key: "node.kubernetes.io/unreachable", Effect: "NoSchedule"}}
		c.putLocked(mine)
		c.renew("a")
		c.synced()
		run(t, c, func(*nodes.Watcher) {
			expect(t, c, "heard", "a", "Ready=True DiskPressure=False [gpu:NoSchedule]")
			time.Sleep(time.Minute)
			expect(t, c, "lost", "a", "Ready=Unknown DiskPressure=Unknown [gpu:NoSchedule node.kubernetes.io/unreachable:NoExecute node.kubernetes.io/unreachable:NoSchedule]")
		})
	})
}

// A lease that is told again, after a broken watch, is no renewal.
func TestALeaseToldAgainIsNoRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.create("a", corev1.ConditionTrue)
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "77"}}
		c.feed <- nodes.Event{Lease: lease}
		c.synced()
		run(t, c, func(*nodes.Watcher) {
			for range 41 {
				time.Sleep(time.Second)
				c.feed <- nodes.Event{Lease: lease}
			}
			expect(t, c, "after 41 s", "a", gone)
		})
	})
}

func TestWritesAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.create("a", corev1.ConditionTrue)
		c.renew("a")
		c.synced()
		run(t, c, func(*nodes.Watcher) {
			c.set(func() { c.fail = errors.New("disk full") })
			time.Sleep(time.Minute)
			expect(t, c, "disk full", "a", reachable)
			c.set(func() { c.fail = nil })
			time.Sleep(2 * time.Second)
			expect(t, c, "later", "a", gone)
		})
	})
}

// When the server itself stood still, the nodes are not to blame.
func TestAPauseOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		for _, name := range []string{"a", "b"} {
			c.create(name, corev1.ConditionTrue)
			c.renew(name)
		}
		c.synced()
		run(t, c, func(*nodes.Watcher) {
			time.Sleep(20 * time.Second)
			c.renew("a")
			c.set(func() { c.block = 70 * time.Second }) // at b's event, 20 s from here
			time.Sleep(21 * time.Second)
			c.set(func() { c.block = 0 })
			time.Sleep(70 * time.Second)
			synctest.Wait()
			c.renew("a")
			time.Sleep(10 * time.Second)
			expect(t, c, "after the pause", "a", reachable)
			expect(t, c, "after the pause", "b", gone)
			time.Sleep(40 * time.Second)
			expect(t, c, "lost for good", "a", gone)
		})
	})
}

func TestADeletedNodeIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.create("a", corev1.ConditionTrue)
		c.renew("a")
		c.synced()
		run(t, c, func(*nodes.Watcher) {
			c.feed <- nodes.Event{Node: c.nodes["a"], Deleted: true}
			time.Sleep(time.Hour)
			c.renew("a") // its agent knows nothing of it
			time.Sleep(time.Hour)
			synctest.Wait()
			if c.writes != 0 || len(c.events) != 0 {
				t.Errorf("%d writes, events %q", c.writes, c.events)
			}
		})
	})
}

// Three hundred nodes come at once, and later go at once.
func TestManyNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		for i := range 300 {
			c.create(fmt.Sprint("n", i), corev1.ConditionTrue)
		}
		c.synced()
		run(t, c, func(w *nodes.Watcher) {
			<-w.Settled()
			for i := range 300 {
				c.renew(fmt.Sprint("n", i))
				c.report(fmt.Sprint("n", i), corev1.ConditionTrue)
			}
			for i := range 300 {
				expect(t, c, "back", fmt.Sprint("n", i), reachable)
			}
			time.Sleep(time.Minute)
			for i := range 300 {
				expect(t, c, "lost", fmt.Sprint("n", i), gone)
			}
		})
	})
}
