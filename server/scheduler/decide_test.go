package scheduler_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"bramble.dev/bramble/server/scheduler"
)

// list reads "cpu=1 memory=1Gi".
func list(s string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for _, f := range strings.Fields(s) {
		name, value, _ := strings.Cut(f, "=")
		l[corev1.ResourceName(name)] = resource.MustParse(value)
	}
	return l
}

func node(name, allocatable string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}}}
	n.Status.Allocatable = list(allocatable)
	for _, f := range change {
		f(n)
	}
	return n
}

func pod(name, requests string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "u"}}
	p.Spec.SchedulerName = corev1.DefaultSchedulerName
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: list(requests)}}}
	p.Status.Phase = corev1.PodPending
	for _, f := range change {
		f(p)
	}
	return p
}

func on(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = name } }
func cordoned(n *corev1.Node)          { n.Spec.Unschedulable = true }

func tainted(key string, effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: "v", Effect: effect})
	}
}

func snapshot(objects ...any) *scheduler.Snapshot {
	s := scheduler.NewSnapshot()
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Node:
			s.PutNode(o)
		case *corev1.Namespace:
			s.PutNamespace(o)
		case *corev1.Pod:
			s.PutPod(o)
		}
	}
	return s
}

func profile() scheduler.Profile { return scheduler.Default(func(int) int { return 1 }) } // the first of equals

const big = "cpu=4 memory=4Gi pods=110"

func TestDecide(t *testing.T) {
	tolerant := func(tol corev1.Toleration) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{tol} }
	}
	for _, tt := range []struct {
		name    string
		there   []any
		pod     *corev1.Pod
		node    string
		message string
	}{
		{"no nodes", nil, pod("p", ""), "", "0/0 nodes fit: no node has joined the cluster yet"},
		{"one", []any{node("a", big)}, pod("p", "cpu=1"), "a", "1/1 nodes fit"},
		{"the emptier", []any{node("a", big), node("b", big), pod("q", "cpu=1", on("a"))}, pod("p", "cpu=1"), "b", "2/2 nodes fit"},
		{"the larger", []any{node("a", "cpu=1 memory=1Gi pods=9"), node("b", big)}, pod("p", "cpu=500m memory=500Mi"), "b", "2/2 nodes fit"},
		{"by both memory and cordon", []any{node("a", "cpu=4 memory=1Gi pods=9"), node("b", "cpu=4 memory=1Gi pods=9"), node("c", big, cordoned)},
			pod("p", "memory=2Gi"), "", "0/3 nodes fit: 2 had not enough memory, 1 was cordoned"},
		{"both cordoned", []any{node("a", big, cordoned), node("b", big, cordoned)}, pod("p", ""), "", "0/2 nodes fit: 2 were cordoned"},
		{"cordon tolerated", []any{node("a", big, cordoned, tainted("node.kubernetes.io/unschedulable", "NoSchedule"))},
			pod("p", "", tolerant(corev1.Toleration{Key: "node.kubernetes.io/unschedulable", Operator: corev1.TolerationOpExists})), "a", "1/1 nodes fit"},
		{"cordon said once", []any{node("a", big, cordoned, tainted("node.kubernetes.io/unschedulable", "NoSchedule"))}, pod("p", ""), "", "0/1 nodes fit: 1 was cordoned"},
		{"exactly full", []any{node("a", "cpu=1 memory=1Gi pods=1")}, pod("p", "cpu=1 memory=1Gi"), "a", "1/1 nodes fit"},
		{"pod count", []any{node("a", "cpu=1 memory=1Gi pods=1"), pod("q", "", on("a"))}, pod("p", ""), "", "0/1 nodes fit: 1 had no room for one more pod"},
		{"ended pods count not", []any{node("a", "cpu=1 memory=1Gi pods=1"), pod("q", "cpu=1", on("a"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })}, pod("p", "cpu=1"), "a", "1/1 nodes fit"},
		{"over-committed in what it does not ask for", []any{node("a", "cpu=1 memory=1Gi pods=9"), pod("q", "cpu=2", on("a"))}, pod("p", "memory=1Mi"), "a", "1/1 nodes fit"},
		{"device", []any{node("a", big+" example.org/npu=1"), node("b", big), pod("q", "example.org/npu=1", on("a"))}, pod("p", "example.org/npu=1"), "", "0/2 nodes fit: 2 had not enough example.org/npu"},
		{"selector", []any{node("a", big), node("b", big)}, pod("p", "", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": "b"} }), "b", "1/2 nodes fit: 1 did not match the pod's node selector"},
		{"node name", []any{node("a", big), node("b", big)}, pod("p", "", on("b")), "b", "1/2 nodes fit: 1 was not the one that the pod names"},
		{"taint", []any{node("a", big, tainted("gpu", "NoSchedule"))}, pod("p", ""), "", "0/1 nodes fit: 1 had the taint gpu=v:NoSchedule"},
		{"taint tolerated", []any{node("a", big, tainted("gpu", "NoSchedule"))}, pod("p", "", tolerant(corev1.Toleration{Key: "gpu", Value: "v"})), "a", "1/1 nodes fit"},
		{"soft taint", []any{node("a", big, tainted("gpu", "PreferNoSchedule"))}, pod("p", ""), "a", "1/1 nodes fit"},
		{"unreachable, said once", []any{node("a", big, tainted("node.kubernetes.io/unreachable", "NoSchedule"), tainted("node.kubernetes.io/unreachable", "NoExecute"))}, pod("p", ""), "", "0/1 nodes fit: 1 was out of reach"},
		{"not ready", []any{node("a", big, tainted("node.kubernetes.io/not-ready", "NoSchedule"))}, pod("p", ""), "", "0/1 nodes fit: 1 was not ready"},
		{"NoExecute tolerated for a time, NoSchedule not", []any{node("a", big, tainted("node.kubernetes.io/unreachable", "NoSchedule"), tainted("node.kubernetes.io/unreachable", "NoExecute"))},
			pod("p", "", tolerant(corev1.Toleration{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: "NoExecute"})), "", "0/1 nodes fit: 1 was out of reach"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := profile().Decide(snapshot(tt.there...), scheduler.NewPod(tt.pod))
			if d.Node != tt.node {
				t.Errorf("placed on %q, want %q", d.Node, tt.node)
			}
			if diff := cmp.Diff(tt.message, d.Message()); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScores(t *testing.T) {
	s := snapshot(node("a", "cpu=4 memory=4Gi pods=9"), pod("q", "cpu=1 memory=1Gi", on("a")))
	for _, tt := range []struct {
		requests       string
		least, balance int64
	}{
		{"cpu=1 memory=1Gi", 50, 100},
		{"cpu=3 memory=0", 38, 63}, // memory that is said to be 0 is 0
		{"cpu=3 memory=3Gi", 0, 100},
		{"cpu=9 memory=9Gi", 0, 100},
	} {
		p := scheduler.NewPod(pod("p", tt.requests))
		if got := (scheduler.LeastAllocated{}).Rank(s, p, s.Nodes()).Score(0); got != tt.least {
			t.Errorf("%s: LeastAllocated is %d, want %d", tt.requests, got, tt.least)
		}
		if got := (scheduler.Balance{}).Rank(s, p, s.Nodes()).Score(0); got != tt.balance {
			t.Errorf("%s: Balance is %d, want %d", tt.requests, got, tt.balance)
		}
	}
	silent := scheduler.NewPod(pod("p", ""))
	if silent.Asked.MilliCPU != 0 || silent.Likely.MilliCPU != 100 || silent.Likely.MemoryBytes != 200<<20 {
		t.Errorf("a pod that asks for nothing: %+v, %+v", silent.Asked, silent.Likely)
	}
}

// Pods that ask for nothing must spread all the same.
func TestPodsThatAskForNothingSpread(t *testing.T) {
	s := snapshot(node("a", big), node("b", big), node("c", big))
	count := map[string]int{}
	for i := range 9 {
		p := scheduler.NewPod(pod(fmt.Sprint("p", i), ""))
		d := profile().Decide(s, p)
		s.Assume(p, d.Node)
		count[d.Node]++
	}
	if want := map[string]int{"a": 3, "b": 3, "c": 3}; !maps.Equal(count, want) {
		t.Errorf("got %v", count)
	}
}

func TestTiesAreBrokenByPick(t *testing.T) {
	s := snapshot(node("a", big), node("b", big), node("c", big))
	var asked []int
	p := scheduler.Default(func(n int) int { asked = append(asked, n); return 0 })
	if d := p.Decide(s, scheduler.NewPod(pod("p", ""))); d.Node != "c" || !cmp.Equal(asked, []int{2, 3}) {
		t.Errorf("placed on %s after Pick was asked for %v", d.Node, asked)
	}
}

func TestSnapshotCountsPodsThatComeBeforeTheirNode(t *testing.T) {
	s := snapshot(pod("q", "cpu=3", on("a")), node("a", big))
	if d := profile().Decide(s, scheduler.NewPod(pod("p", "cpu=2"))); d.Node != "" {
		t.Error("the node was over-committed")
	}
	s.DeleteNode("a")
	s.PutNode(node("a", big))
	if d := profile().Decide(s, scheduler.NewPod(pod("p", "cpu=2"))); d.Node != "" {
		t.Error("the node was over-committed after it left and came")
	}
}

// Whatever comes and goes, no node ever promises more than it has, and every
// node either fits or is counted with a reason.
func TestNeverOverCommitted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scheduler.NewSnapshot()
		nodes := map[string]*corev1.Node{}
		type placed struct {
			pod  *scheduler.Pod
			node string
		}
		pods := map[string]placed{}
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := fmt.Sprint("n", rapid.IntRange(0, 4).Draw(t, "node"))
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0, 1:
				if _, there := nodes[name]; there {
					continue // a node never shrinks under its pods here
				}
				n := node(name, fmt.Sprintf("cpu=%dm memory=%dMi pods=%d example.org/npu=%d", rapid.IntRange(0, 4000).Draw(t, "cpu"),
					rapid.IntRange(0, 4096).Draw(t, "memory"), rapid.IntRange(0, 5).Draw(t, "pods"), rapid.IntRange(0, 2).Draw(t, "npu")))
				if rapid.Bool().Draw(t, "cordon") {
					cordoned(n)
				}
				nodes[name] = n
				s.PutNode(n)
			case 2:
				for k, p := range pods {
					s.DeletePod(keyOf(p.pod))
					delete(pods, k)
					break
				}
			default:
				p := scheduler.NewPod(pod(fmt.Sprint("p", i), fmt.Sprintf("cpu=%dm memory=%dMi example.org/npu=%d",
					rapid.IntRange(0, 2000).Draw(t, "cpu"), rapid.IntRange(0, 2048).Draw(t, "memory"), rapid.IntRange(0, 1).Draw(t, "npu"))))
				d := profile().Decide(s, p)
				counted := 0
				for _, c := range d.Counts() {
					counted += c.Nodes
				}
				reasons := 0
				for _, v := range d.Verdicts {
					reasons += len(v.Reasons)
					if v.Total < 0 || v.Total > 100 {
						t.Fatalf("a score of %d", v.Total)
					}
				}
				if counted != reasons || len(d.Verdicts) != len(nodes) || d.Node == "" != (d.Fitting() == 0) {
					t.Fatalf("%d reasons, %d counted, %d nodes, %d fit, placed on %q", reasons, counted, len(nodes), d.Fitting(), d.Node)
				}
				if d.Node != "" {
					s.Assume(p, d.Node)
					pods[p.Name] = placed{p, d.Node}
				}
			}
			for _, n := range nodes {
				asked := corev1.ResourceList{}
				count := int64(0)
				for _, p := range pods {
					if p.node != n.Name {
						continue
					}
					count++
					for name, q := range p.pod.Spec.Containers[0].Resources.Requests {
						sum := asked[name]
						sum.Add(q)
						asked[name] = sum
					}
				}
				for name, q := range asked {
					if has := n.Status.Allocatable[name]; q.Cmp(has) > 0 {
						t.Fatalf("%s has %s of %s and promised %s", n.Name, has.String(), name, q.String())
					}
				}
				if count > n.Status.Allocatable.Pods().Value() {
					t.Fatalf("%s has %d pods", n.Name, count)
				}
			}
		}
	})
}

func keyOf(p *scheduler.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint("nodes=", n), func(b *testing.B) {
			s := scheduler.NewSnapshot()
			for i := range n {
				s.PutNode(node(fmt.Sprintf("n%04d", i), big))
				s.PutPod(pod(fmt.Sprint("q", i), fmt.Sprintf("cpu=%dm memory=%dMi", i%2000, i%1000), on(fmt.Sprintf("n%04d", i))))
			}
			p := scheduler.NewPod(pod("p", "cpu=100m memory=64Mi"))
			f := profile()
			b.ReportAllocs()
			for b.Loop() {
				if d := f.Decide(s, p); d.Node == "" {
					b.Fatal("fits nowhere")
				}
			}
		})
	}
}
