package scheduler_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/scheduler"
)

func since(seconds int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		at := metav1.Unix(seconds, 0)
		p.Status.StartTime = &at
	}
}

func TestPreemptEndsTheLeastImportant(t *testing.T) {
	const small = "cpu=2 memory=4Gi pods=10"
	for _, tt := range []struct {
		name  string
		there []any
		pod   *corev1.Pod
		want  string // "node: victims"; "": none
	}{
		{"the least important", []any{node("a", small), pod("q", "cpu=1", on("a"), priority(5)), pod("r", "cpu=1", on("a"), priority(1))}, pod("p", "cpu=1", priority(9)), "a: r"},
		{"as few as will do", []any{node("a", small), pod("q", "cpu=500m", on("a")), pod("r", "cpu=1500m", on("a"))}, pod("p", "cpu=500m", priority(9)), "a: r"}, // q has run no shorter, and stays
		{"the younger goes", []any{node("a", small), pod("q", "cpu=1", on("a"), since(100)), pod("r", "cpu=1", on("a"), since(50))}, pod("p", "cpu=1", priority(9)), "a: q"},
		{"where it hurts least", []any{node("a", small), node("b", small), pod("q", "cpu=2", on("a"), priority(2)), pod("r", "cpu=2", on("b"), priority(1))}, pod("p", "cpu=2", priority(9)), "b: r"},
		{"the smaller sum", []any{node("a", small), node("b", small), pod("q", "cpu=1", on("a"), priority(2)), pod("q2", "cpu=1", on("a"), priority(1)), pod("r", "cpu=2", on("b"), priority(2))}, pod("p", "cpu=2", priority(9)), "b: r"},
		{"not the equal", []any{node("a", small), pod("q", "cpu=2", on("a"), priority(9))}, pod("p", "cpu=2", priority(9)), ""},
		{"not the more important", []any{node("a", small), pod("q", "cpu=2", on("a"), priority(10))}, pod("p", "cpu=2", priority(9)), ""},
		{"not if it does not help", []any{node("a", small), pod("q", "cpu=1", on("a"))}, pod("p", "cpu=3", priority(9)), ""},
		{"not on a node that it must not have", []any{node("a", small, cordoned), pod("q", "cpu=2", on("a"))}, pod("p", "cpu=2", priority(9)), ""},
		{"not by one that never does", []any{node("a", small), pod("q", "cpu=2", on("a"))}, pod("p", "cpu=2", priority(9), spec("preemptionPolicy: Never")), ""},
		{"for a port", []any{node("a", small), pod("q", "", on("a"), spec("containers: [{name: c, ports: [{hostPort: 80}]}]")), pod("r", "", on("a"))}, pod("p", "", priority(9), spec("containers: [{name: c, ports: [{hostPort: 80}]}]")), "a: q"},
		{"for distance, also on other nodes of the zone", []any{node("a", small, nodeLabels("zone=a")), pod("q", "", on("a"), labelled("app=web")), pod("r", "", on("a"))},
			pod("p", "", priority(9), near("podAntiAffinity", "labelSelector: {matchLabels: {app: web}}", "zone")), "a: q"},
		{"not the pods of another node", []any{node("a", small, nodeLabels("zone=a")), node("b", "cpu=0 memory=1Gi pods=9", nodeLabels("zone=a")), pod("q", "", on("b"), labelled("app=web")), pod("r", "cpu=1", on("a"))},
			pod("p", "cpu=1", priority(9), near("podAntiAffinity", "labelSelector: {matchLabels: {app: web}}", "zone")), ""},
		{"from a pod that refuses it", []any{node("a", small, nodeLabels("zone=a")), pod("q", "", on("a"), near("podAntiAffinity", "labelSelector: {matchLabels: {app: web}}", "zone"))}, pod("p", "", priority(9), labelled("app=web")), "a: q"},
		{"not the pod that it must be near", []any{node("a", small, nodeLabels("zone=a")), pod("q", "cpu=2", on("a"), labelled("app=web"))}, pod("p", "cpu=1", priority(9), near("podAffinity", "labelSelector: {matchLabels: {app: web}}", "zone")), ""},
		{"for an even spread", []any{node("a", small, nodeLabels("zone=a")), node("b", small, nodeLabels("zone=b"), cordoned), pod("q", "", on("a"), labelled("app=web"))}, pod("p", "", priority(9), labelled("app=web"), spread("DoNotSchedule", "zone", "")), "a: q"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, p := snapshot(tt.there...), scheduler.NewPod(tt.pod)
			d := profile().Decide(s, p)
			if d.Node != "" {
				t.Fatalf("it fits on %s without", d.Node)
			}
			candidate, found := profile().Preempt(s, p, &d)
			got := ""
			if found {
				var names []string
				for _, v := range candidate.Victims {
					names = append(names, v.Name)
				}
				got = candidate.Node + ": " + strings.Join(names, " ")
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if again := profile().Decide(s, p); again.Message() != d.Message() {
				t.Errorf("the snapshot is another now: %s, was %s", again.Message(), d.Message())
			}
		})
	}
}

// From the pod that fits nowhere to the one that has its place, with what each
// is told meanwhile.
func TestAPodMakesRoomForAMoreImportantOne(t *testing.T) {
	run(t, func(t *testing.T, c *cluster, s *scheduler.Scheduler) {
		c.put(node("a", "cpu=2 memory=4Gi pods=10"), pod("low", "cpu=2", on("a"), priority(1)), pod("high", "cpu=2", priority(9)))
		c.synced()
		synctest.Wait()
		if !slices.Equal(c.evicted, []string{"low"}) || !slices.Contains(c.events, "low Preempted") || c.pods["high"].Status.NominatedNodeName != "a" {
			t.Errorf("ended: %q, events %q, status %v", c.evicted, c.events, c.pods["high"].Status)
		}
		why := func(name, want string) {
			t.Helper()
			p, err := s.Explain(t.Context(), "default", name)
			if err != nil || !strings.Contains(p.Status.Message, want) {
				t.Errorf("why %s: %q, %v, want %q", name, p.Status.Message, err, want)
			}
		}
		why("high", "0/1 nodes fit: 1 had not enough CPU; gets a from 1 pod of lower priority (9, of at most 1)")
		why("low", "the pod has to leave a, for one of priority 9; its own is 1")
		// While the other leaves, nothing more is ended and nobody else gets the place.
		c.put(node("a", "cpu=3 memory=4Gi pods=10"))
		c.put(pod("middle", "cpu=2", priority(5)), pod("little", "cpu=500m"))
		time.Sleep(time.Minute)
		synctest.Wait()
		expect(t, c) // the room is kept beside those that leave
		if len(c.evicted) != 1 {
			t.Errorf("ended: %q", c.evicted)
		}
		why("middle", "1 had not enough CPU")
		why("high", "waits for a, which less important pods are leaving")
		c.remove("low")
		time.Sleep(time.Minute)
		synctest.Wait()
		expect(t, c, "high a", "little a")
		why("middle", "0/1 nodes fit: 1 had not enough CPU")
	})
}

// The room is kept against those that are less important, and free again when
// the pod that it is for goes.
func TestRoomIsKept(t *testing.T) {
	run(t, func(t *testing.T, c *cluster, s *scheduler.Scheduler) {
		nominated := func(p *corev1.Pod) { p.Status.NominatedNodeName = "a" }
		// After a restart: room was made already, and something still keeps the pod waiting.
		c.put(node("a", "cpu=2 memory=4Gi pods=10"), pod("high", "cpu=2", priority(9), nominated, spec("nodeSelector: {disk: ssd}")), pod("low", "cpu=1"))
		c.synced()
		time.Sleep(time.Minute)
		synctest.Wait()
		expect(t, c, "low a") // no room can be made: not on this node
		if c.pods["high"].Status.NominatedNodeName != "" {
			t.Error("the nomination stays though it is in vain")
		}
	})
	run(t, func(t *testing.T, c *cluster, s *scheduler.Scheduler) {
		c.slow = time.Hour // bindings do not end
		c.put(node("a", "cpu=2 memory=4Gi pods=10"), pod("old", "cpu=2", on("a")), pod("high", "cpu=2", priority(9)))
		c.synced()
		synctest.Wait()
		c.put(pod("higher", "cpu=2", priority(10)))
		time.Sleep(time.Minute)
		synctest.Wait()
		if c.pods["higher"].Status.NominatedNodeName != "a" {
			t.Errorf("the more important pod does not get the room: %q", c.said)
		}
		if len(c.evicted) != 1 {
			t.Errorf("ended: %q", c.evicted)
		}
	})
}

// What could not be ended is tried again.
func TestFailedEvictionIsTriedAgain(t *testing.T) {
	run(t, func(t *testing.T, c *cluster, _ *scheduler.Scheduler) {
		c.fail = func(name string, try int) error {
			if name == "low" && try < 3 {
				return errors.New("disk full")
			}
			return nil
		}
		c.put(node("a", "cpu=2 memory=4Gi pods=10"), pod("low", "cpu=2", on("a")), pod("high", "cpu=2", priority(9)))
		c.synced()
		time.Sleep(time.Minute)
		synctest.Wait()
		if !slices.Equal(c.evicted, []string{"low"}) || c.evictions != 3 {
			t.Errorf("ended: %q after %d tries", c.evicted, c.evictions)
		}
	})
}

func TestGatesKeepAPodWaiting(t *testing.T) {
	run(t, func(t *testing.T, c *cluster, s *scheduler.Scheduler) {
		c.put(node("a", big), pod("p", "", spec("schedulingGates: [{name: quota}, {name: b}]")))
		c.synced()
		time.Sleep(time.Minute)
		synctest.Wait()
		expect(t, c)
		if len(c.said) > 0 || len(c.events) > 0 {
			t.Errorf("a gated pod is talked of: %q %q", c.said, c.events)
		}
		p, err := s.Explain(t.Context(), "default", "p")
		if err != nil || !strings.HasPrefix(p.Status.Message, "the pod waits until its scheduling gates are removed: quota, b; if it were placed now: 1/1 nodes fit") {
			t.Errorf("why: %v, %v", p, err)
		}
		c.put(pod("p", "", spec("schedulingGates: [{name: b}]")))
		expect(t, c)
		c.put(pod("p", ""))
		expect(t, c, "p a")
	})
}

// Pods that wait for neighbours are tried when one comes, changes or goes.
func TestNeighboursWakeAPod(t *testing.T) {
	const web = "labelSelector: {matchLabels: {app: web}}"
	for name, tt := range map[string]struct {
		there []any
		pod   func(*corev1.Pod)
		help  func(c *cluster)
	}{
		"the pod that it must be near comes":    {nil, near("podAffinity", web, "zone"), func(c *cluster) { c.put(pod("q", "", on("a"), labelled("app=web"))) }},
		"a pod gets the label":                  {[]any{pod("q", "", on("a"))}, near("podAffinity", web, "zone"), func(c *cluster) { c.put(pod("q", "", on("a"), labelled("app=web"))) }},
		"the pod that it must not be near goes": {[]any{pod("q", "", on("a"), labelled("app=web"))}, near("podAntiAffinity", web, "zone"), func(c *cluster) { c.remove("q") }},
		"the namespace gets the label": {[]any{namespace("default", ""), pod("q", "", on("a"), labelled("app=web"))},
			near("podAffinity", web+", namespaceSelector: {matchLabels: {team: x}}", "zone"), func(c *cluster) { c.put(namespace("default", "team=x")) }},
		"the pod gets the label itself": {[]any{pod("q", "", on("a"))}, near("podAffinity", web, "zone"), func(c *cluster) {
			c.put(pod("p", "", labelled("app=web"), near("podAffinity", web, "zone")))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, c *cluster, _ *scheduler.Scheduler) {
				c.put(append(tt.there, node("a", big, nodeLabels("zone=z")), pod("p", "", tt.pod))...)
				c.synced()
				time.Sleep(time.Minute)
				synctest.Wait()
				expect(t, c)
				tt.help(c)
				expect(t, c, "p a")
			})
		})
	}
}
