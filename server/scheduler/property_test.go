package scheduler_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"bramble.dev/bramble/server/scheduler"
)

// world is what the property test believes, kept as simply as can be.
type world struct {
	nodes []*corev1.Node
	on    map[string]string // pod: node
	pods  map[string]*corev1.Pod
}

// value is where a pod is: its node's value of the label that a kind of term names.
func (w *world) value(pod, key string) (string, bool) {
	for _, n := range w.nodes {
		if n.Name == w.on[pod] {
			v, has := n.Labels[key]
			return v, has
		}
	}
	return "", false
}

func selects(selector map[string]string, p *corev1.Pod) bool {
	for key, value := range selector {
		if p.Labels[key] != value {
			return false
		}
	}
	return true
}

// broken says which required constraint of p, or of another against p, does not
// hold with p on its node; the others are already where they are.
func (w *world) broken(p *corev1.Pod) string {
	for _, t := range requiredTerms(p, true) {
		at, has := w.value(p.Name, t.TopologyKey)
		for name, q := range w.pods {
			if other, there := w.value(name, t.TopologyKey); name != p.Name && has && there && at == other && selects(t.LabelSelector.MatchLabels, q) {
				return "anti-affinity to " + name
			}
		}
	}
	for name, q := range w.pods {
		for _, t := range requiredTerms(q, true) {
			at, has := w.value(p.Name, t.TopologyKey)
			if other, there := w.value(name, t.TopologyKey); name != p.Name && has && there && at == other && selects(t.LabelSelector.MatchLabels, p) {
				return "anti-affinity of " + name
			}
		}
	}
	for _, t := range requiredTerms(p, false) {
		at, has := w.value(p.Name, t.TopologyKey)
		near, any := false, false
		for name, q := range w.pods {
			if name == p.Name || !selects(t.LabelSelector.MatchLabels, q) {
				continue
			}
			other, there := w.value(name, t.TopologyKey)
			any = any || there
			near = near || there && at == other
		}
		if !has || !near && (any || !selects(t.LabelSelector.MatchLabels, p)) {
			return "affinity"
		}
	}
	return w.uneven(p)
}

func requiredTerms(p *corev1.Pod, anti bool) []corev1.PodAffinityTerm {
	switch a := p.Spec.Affinity; {
	case a == nil:
	case anti && a.PodAntiAffinity != nil:
		return a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	case !anti && a.PodAffinity != nil:
		return a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

func (w *world) uneven(p *corev1.Pod) string {
	for _, c := range p.Spec.TopologySpreadConstraints {
		counts := map[string]int{}
		for _, n := range w.nodes {
			if v, has := n.Labels[c.TopologyKey]; has {
				counts[v] += 0
			}
		}
		for name, q := range w.pods {
			if v, has := w.value(name, c.TopologyKey); has && selects(c.LabelSelector.MatchLabels, q) {
				counts[v]++
			}
		}
		at, has := w.value(p.Name, c.TopologyKey)
		if !has {
			return "spread without a label"
		}
		if !selects(c.LabelSelector.MatchLabels, p) {
			continue
		}
		for _, count := range counts {
			if counts[at]-count > int(c.MaxSkew) {
				return fmt.Sprint("spread ", counts)
			}
		}
	}
	return ""
}

// over says what a node has promised more of than it has.
func (w *world) over() string {
	for _, n := range w.nodes {
		cpu, count, ports := resource.Quantity{}, int64(0), map[int32]string{}
		for name, node := range w.on {
			if node != n.Name {
				continue
			}
			p := w.pods[name]
			cpu.Add(*p.Spec.Containers[0].Resources.Requests.Cpu())
			count++
			for _, port := range p.Spec.Containers[0].Ports {
				if other := ports[port.HostPort]; other != "" {
					return fmt.Sprintf("%s: port %d of %s and %s", n.Name, port.HostPort, name, other)
				}
				ports[port.HostPort] = name
			}
		}
		if cpu.Cmp(*n.Status.Allocatable.Cpu()) > 0 || count > n.Status.Allocatable.Pods().Value() {
			return fmt.Sprintf("%s: %s CPUs, %d pods", n.Name, cpu.String(), count)
		}
	}
	return ""
}

// Whatever pods ask for, no node is over-committed, and each required
// constraint holds when a pod is placed; also where others had to go for it.
func TestRequiredConstraintsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w := scheduler.NewSnapshot(), &world{on: map[string]string{}, pods: map[string]*corev1.Pod{}}
		for i := range rapid.IntRange(1, 6).Draw(t, "nodes") {
			labels := []string{"", "zone=a", "zone=b", "zone=c"}[rapid.IntRange(0, 3).Draw(t, "zone")]
			n := node(fmt.Sprint("n", i), fmt.Sprintf("cpu=%d memory=9Gi pods=%d", rapid.IntRange(0, 4).Draw(t, "cpu"), rapid.IntRange(1, 5).Draw(t, "pods")), nodeLabels(labels))
			w.nodes = append(w.nodes, n)
			s.PutNode(n)
		}
		gone := func(name string) {
			s.DeletePod(keyOf(scheduler.NewPod(w.pods[name])))
			delete(w.pods, name)
			delete(w.on, name)
		}
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			if name := fmt.Sprint("p", rapid.IntRange(0, i).Draw(t, "gone")); w.pods[name] != nil && rapid.IntRange(0, 3).Draw(t, "leave") == 0 {
				gone(name)
			}
			p := drawPod(t, fmt.Sprint("p", i))
			sp := scheduler.NewPod(p)
			d := profile().Decide(s, sp)
			at := d.Node
			if at == "" {
				candidate, found := profile().Preempt(s, sp, &d)
				if !found {
					continue
				}
				at = candidate.Node
				for _, v := range candidate.Victims {
					if v.Priority >= sp.Priority {
						t.Fatalf("%s of priority %d goes for one of %d", v.Name, v.Priority, sp.Priority)
					}
					gone(v.Name)
				}
			}
			s.Assume(sp, at)
			w.pods[p.Name], w.on[p.Name] = p, at
			if why := w.broken(p); why != "" {
				t.Fatalf("%s on %s: %s", p.Name, at, why)
			}
			if why := w.over(); why != "" {
				t.Fatal(why)
			}
		}
	})
}

func drawPod(t *rapid.T, name string) *corev1.Pod {
	app := func() string { return rapid.SampledFrom([]string{"x", "y"}).Draw(t, "app") }
	key := func() string { return rapid.SampledFrom([]string{"zone", "kubernetes.io/hostname"}).Draw(t, "key") }
	p := pod(name, fmt.Sprintf("cpu=%dm", 500*rapid.IntRange(0, 4).Draw(t, "cpu")), labelled("app="+app()), priority(int32(rapid.IntRange(0, 2).Draw(t, "priority"))))
	if rapid.IntRange(0, 3).Draw(t, "anti") == 0 {
		near("podAntiAffinity", "labelSelector: {matchLabels: {app: "+app()+"}}", key())(p)
	}
	if rapid.IntRange(0, 3).Draw(t, "near") == 0 {
		near("podAffinity", "labelSelector: {matchLabels: {app: "+app()+"}}", key())(p)
	}
	if rapid.IntRange(0, 3).Draw(t, "spread") == 0 {
		spec(fmt.Sprintf("topologySpreadConstraints: [{labelSelector: {matchLabels: {app: %s}}, whenUnsatisfiable: DoNotSchedule, topologyKey: %s, maxSkew: %d}]",
			app(), key(), rapid.IntRange(1, 2).Draw(t, "skew")))(p)
	}
	if rapid.IntRange(0, 5).Draw(t, "port") == 0 {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}}
	}
	return p
}

// BenchmarkDecideAmongMany is a decision with 1,000 nodes and 10,000 pods.
func BenchmarkDecideAmongMany(b *testing.B) {
	const nodes, pods = 1000, 10_000
	web := "labelSelector: {matchLabels: {app: web3}}"
	for name, change := range map[string]func(*corev1.Pod){
		"plain":         func(*corev1.Pod) {},
		"affinity":      near("podAffinity", web, "zone"),
		"anti-affinity": near("podAntiAffinity", web, "kubernetes.io/hostname"),
		"spread":        spread("DoNotSchedule", "zone", "maxSkew: 9999"),
		"soft spread":   spread("ScheduleAnyway", "zone", ""),
		"preferred":     spec("affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 9, podAffinityTerm: {topologyKey: zone, " + web + "}}]}}"),
		"preempting":    func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list("cpu=4"); priority(9)(p) },
	} {
		b.Run(name, func(b *testing.B) {
			s := scheduler.NewSnapshot()
			for i := range nodes {
				s.PutNode(node(fmt.Sprintf("n%04d", i), big, nodeLabels(fmt.Sprintf("zone=z%d", i%10))))
			}
			for i := range pods {
				p := pod(fmt.Sprint("q", i), "cpu=100m memory=64Mi", on(fmt.Sprintf("n%04d", i%nodes)), labelled(fmt.Sprintf("app=web%d", i%50)))
				if i%10 == 0 { // a tenth keeps away from its own kind
					near("podAntiAffinity", fmt.Sprintf("labelSelector: {matchLabels: {app: web%d}}", i%50), "kubernetes.io/hostname")(p)
				}
				s.PutPod(p)
			}
			f, p := profile(), scheduler.NewPod(pod("p", "cpu=100m memory=64Mi", change, labelled("app=web")))
			b.ReportAllocs()
			for b.Loop() {
				if d := f.Decide(s, p); d.Node == "" {
					if _, ok := f.Preempt(s, p, &d); !ok {
						b.Fatal("fits nowhere: ", d.Message())
					}
				}
			}
		})
	}
}
