package scheduler_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"bramble.dev/bramble/server/scheduler"
)

// spec adds the YAML of a pod's spec to the pod.
func spec(text string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		if err := yaml.UnmarshalStrict([]byte(text), &p.Spec); err != nil {
			panic(err)
		}
	}
}

// labelled reads "app=web tier=front".
func labelled(s string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = pairs(s) }
}

func nodeLabels(s string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		for key, value := range pairs(s) {
			n.Labels[key] = value
		}
	}
}

func pairs(s string) map[string]string {
	all := map[string]string{}
	for _, f := range strings.Fields(s) {
		key, value, _ := strings.Cut(f, "=")
		all[key] = value
	}
	return all
}

func in(namespace string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Namespace = namespace }
}

func namespace(name, labels string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: pairs(labels)}}
}

func priority(n int32) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.Priority = &n } }

// shelf is two zones of two nodes each.
func shelf(more ...any) []any {
	return append([]any{
		node("a1", big, nodeLabels("zone=a")), node("a2", big, nodeLabels("zone=a")),
		node("b1", big, nodeLabels("zone=b")), node("b2", big, nodeLabels("zone=b")),
	}, more...)
}

func near(kind, selector, key string) func(*corev1.Pod) {
	return spec("affinity: {" + kind + ": {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: " + key + ", " + selector + "}]}}")
}

func TestRequiredConstraintsSayWhichNodesFit(t *testing.T) {
	const web = "labelSelector: {matchLabels: {app: web}}"
	for _, tt := range []struct {
		name  string
		there []any
		pod   *corev1.Pod
		fits  string // the names of the nodes
		why   string // within the message
	}{
		{"node affinity", shelf(), pod("p", "", spec(`affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [b]}]}, {matchFields: [{key: metadata.name, operator: In, values: [a2]}]}]}}}`)),
			"a2 b1 b2", "1 did not match the pod's node affinity"},
		{"node affinity and selector", shelf(), pod("p", "", spec(`{nodeSelector: {zone: a}, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: NotIn, values: [a]}]}]}}}}`)),
			"", "4 did not match the pod's node selector and affinity"},
		{"host port", shelf(pod("q", "", on("a1"), spec("containers: [{name: c, ports: [{hostPort: 80}]}]"))), pod("p", "", spec("containers: [{name: c, ports: [{hostPort: 80, protocol: TCP}]}]")),
			"a2 b1 b2", "1 had host port 80/TCP taken"},
		{"host port of another protocol and address", shelf(pod("q", "", on("a1"), spec("containers: [{name: c, ports: [{hostPort: 80, protocol: UDP}, {hostPort: 80, hostIP: 10.0.0.1}]}]"))), pod("p", "", spec("containers: [{name: c, ports: [{hostPort: 80, hostIP: 10.0.0.2}]}]")),
			"a1 a2 b1 b2", ""},
		{"host port of all addresses", shelf(pod("q", "", on("a1"), spec("containers: [{name: c, ports: [{hostPort: 80, hostIP: 10.0.0.1}]}]"))), pod("p", "", spec("containers: [{name: c, ports: [{hostPort: 80}]}]")),
			"a2 b1 b2", ""},
		{"a sidecar's host port", shelf(pod("q", "", on("a1"), spec("initContainers: [{name: c, restartPolicy: Always, ports: [{hostPort: 80}]}, {name: d, ports: [{hostPort: 81}]}]"))), pod("p", "", spec("containers: [{name: c, ports: [{hostPort: 81}, {hostPort: 80}]}]")),
			"a2 b1 b2", ""},

		{"affinity", shelf(pod("q", "", on("a1"), labelled("app=web"))), pod("p", "", near("podAffinity", web, "zone")), "a1 a2", "2 had none of the pods near that the pod must be near"},
		{"affinity on the node", shelf(pod("q", "", on("a1"), labelled("app=web"))), pod("p", "", near("podAffinity", web, "kubernetes.io/hostname")), "a1", ""},
		{"affinity to nobody", shelf(), pod("p", "", near("podAffinity", web, "zone")), "", "4 had none"},
		{"the first of a group", shelf(), pod("p", "", labelled("app=web"), near("podAffinity", web, "zone")), "a1 a2 b1 b2", ""},
		{"the first of a group, where the label is", shelf(), pod("p", "", labelled("app=web"), near("podAffinity", web, "rack")), "", "4 had none"},
		{"the second of a group", shelf(pod("q", "", on("b2"), labelled("app=web"))), pod("p", "", labelled("app=web"), near("podAffinity", web, "zone")), "b1 b2", ""},
		{"affinity to pods that match all terms", shelf(pod("q", "", on("a1"), labelled("app=web")), pod("r", "", on("b1"), labelled("app=web tier=x"))),
			pod("p", "", spec(`affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, `+web+`}, {topologyKey: zone, labelSelector: {matchExpressions: [{key: tier, operator: Exists}]}}]}}`)), "b1 b2", ""},
		{"another namespace's pods", shelf(pod("q", "", in("other"), on("a1"), labelled("app=web"))), pod("p", "", near("podAffinity", web, "zone")), "", ""},
		{"of a namespace by name", shelf(pod("q", "", in("other"), on("a1"), labelled("app=web"))), pod("p", "", near("podAffinity", web+", namespaces: [other]", "zone")), "a1 a2", ""},
		{"of a namespace by label", shelf(namespace("other", "team=x"), namespace("more", "team=y"), pod("q", "", in("other"), on("a1"), labelled("app=web")), pod("r", "", in("more"), on("b1"), labelled("app=web"))),
			pod("p", "", near("podAffinity", web+", namespaceSelector: {matchLabels: {team: x}}", "zone")), "a1 a2", ""},
		{"of all namespaces", shelf(pod("q", "", in("other"), on("b1"), labelled("app=web"))), pod("p", "", near("podAffinity", web+", namespaceSelector: {}", "zone")), "b1 b2", ""},
		{"without a selector", shelf(pod("q", "", on("b1"), labelled("app=web"))), pod("p", "", near("podAffinity", "namespaces: [default]", "zone")), "", ""},

		{"anti-affinity", shelf(pod("q", "", on("a1"), labelled("app=web"))), pod("p", "", near("podAntiAffinity", web, "zone")), "b1 b2", "2 had a pod near that the pod must not be near"},
		{"anti-affinity is symmetric", shelf(pod("q", "", on("a1"), near("podAntiAffinity", web, "zone"))), pod("p", "", labelled("app=web")), "b1 b2", "2 had a pod near that must not be near the pod"},
		{"of another namespace, not", shelf(pod("q", "", in("other"), on("a1"), near("podAntiAffinity", web, "zone"))), pod("p", "", labelled("app=web")), "a1 a2 b1 b2", ""},
		{"anti-affinity where the label is missing", shelf(pod("q", "", on("a1"), labelled("app=web"))), pod("p", "", near("podAntiAffinity", web, "rack")), "a1 a2 b1 b2", ""},

		{"spread", shelf(pod("q", "", on("a1"), labelled("app=web"))), pod("p", "", labelled("app=web"), spread("DoNotSchedule", "zone", "")), "b1 b2", "2 had too many such pods already in its part of zone"},
		{"spread with room", shelf(pod("q", "", on("a1"), labelled("app=web"))), pod("p", "", labelled("app=web"), spread("DoNotSchedule", "zone", "maxSkew: 2")), "a1 a2 b1 b2", ""},
		{"spread of a pod that is none of them", shelf(pod("q", "", on("a1"), labelled("app=web"))), pod("p", "", spread("DoNotSchedule", "zone", "")), "a1 a2 b1 b2", ""},
		{"spread by what a node has not", shelf(node("c", big)), pod("p", "", labelled("app=web"), spread("DoNotSchedule", "zone", "")), "a1 a2 b1 b2", "1 had no label zone to spread by"},
		{"too few domains", shelf(pod("q", "", on("a1"), labelled("app=web")), pod("r", "", on("b1"), labelled("app=web"))), pod("p", "", labelled("app=web"), spread("DoNotSchedule", "zone", "minDomains: 3")), "", "4 had too many"},
		{"pods that are leaving do not count", shelf(pod("q", "", on("a1"), labelled("app=web"), func(p *corev1.Pod) { p.DeletionTimestamp = &p.CreationTimestamp })), pod("p", "", labelled("app=web"), spread("DoNotSchedule", "zone", "")), "a1 a2 b1 b2", ""},
		{"another namespace's do not count", shelf(pod("q", "", in("other"), on("a1"), labelled("app=web"))), pod("p", "", labelled("app=web"), spread("DoNotSchedule", "zone", "")), "a1 a2 b1 b2", ""},
		{"nodes that it cannot have do not count", shelf(pod("q", "", on("a1"), labelled("app=web"))), pod("p", "", labelled("app=web"), spec("nodeSelector: {zone: a}"), spread("DoNotSchedule", "zone", "")), "a1 a2", ""},
		{"unless it says so", shelf(pod("q", "", on("a1"), labelled("app=web"))), pod("p", "", labelled("app=web"), spec("nodeSelector: {zone: a}"), spread("DoNotSchedule", "zone", "nodeAffinityPolicy: Ignore")), "", ""},
		{"tainted nodes count", shelf(node("c", big, nodeLabels("zone=c"), tainted("x", "NoSchedule")), pod("q", "", on("a1"), labelled("app=web")), pod("r", "", on("b1"), labelled("app=web"))), pod("p", "", labelled("app=web"), spread("DoNotSchedule", "zone", "")), "", ""},
		{"unless it says not", shelf(node("c", big, nodeLabels("zone=c"), tainted("x", "NoSchedule")), pod("q", "", on("a1"), labelled("app=web")), pod("r", "", on("b1"), labelled("app=web"))), pod("p", "", labelled("app=web"), spread("DoNotSchedule", "zone", "nodeTaintsPolicy: Honor")), "a1 a2 b1 b2", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := profile().Decide(snapshot(tt.there...), scheduler.NewPod(tt.pod))
			var fits []string
			for i := range d.Verdicts {
				if d.Verdicts[i].Fits() {
					fits = append(fits, d.Verdicts[i].Node.Name)
				}
			}
			if got := strings.Join(fits, " "); got != tt.fits || !strings.Contains(d.Message(), tt.why) {
				t.Errorf("fits on %q, want %q; %s", got, tt.fits, d.Message())
			}
		})
	}
}

// spread is a constraint on pods app=web, of maxSkew 1 unless more says other.
func spread(kind, key, more string) func(*corev1.Pod) {
	if !strings.Contains(more, "maxSkew") {
		more = strings.TrimPrefix(more+", maxSkew: 1", ", ")
	}
	return spec("topologySpreadConstraints: [{labelSelector: {matchLabels: {app: web}}, whenUnsatisfiable: " + kind + ", topologyKey: " + key + ", " + more + "}]")
}

// Each score, asked alone.
func TestEachScorePrefersItsNodes(t *testing.T) {
	const web = "{topologyKey: zone, labelSelector: {matchLabels: {app: web}}}"
	image := func(name string, megabytes int64) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{name}, SizeBytes: megabytes << 20})
		}
	}
	for _, tt := range []struct {
		name  string
		score scheduler.Score
		there []any
		pod   *corev1.Pod
		want  []int64 // in the order of the nodes; nil: nothing to say
		first string  // the explanation of the first
	}{
		{"soft taints", scheduler.SoftTaints{}, []any{node("a", big, tainted("x", "PreferNoSchedule"), tainted("y", "PreferNoSchedule")), node("b", big, tainted("x", "PreferNoSchedule")), node("c", big)}, pod("p", ""), []int64{0, 50, 100}, "2 taints that the pod does not tolerate"},
		{"tolerated", scheduler.SoftTaints{}, []any{node("a", big, tainted("x", "PreferNoSchedule")), node("b", big)}, pod("p", "", spec("tolerations: [{operator: Exists}]")), nil, ""},
		{"preferred nodes", scheduler.PreferredNodes{}, shelf(), pod("p", "", spec(`affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 30, preference: {matchExpressions: [{key: zone, operator: In, values: [a]}]}}, {weight: 10, preference: {matchFields: [{key: metadata.name, operator: In, values: [a1]}]}}]}}`)), []int64{100, 75, 0, 0}, "matches preferences of weight 40"},
		{"preferred pods", scheduler.PreferredPods{}, shelf(pod("q", "", on("b1"), labelled("app=web"))), pod("p", "", spec(`affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 7, podAffinityTerm: `+web+`}]}}`)), []int64{0, 0, 100, 100}, "preferences for pods near add up to 0"},
		{"preferred far", scheduler.PreferredPods{}, shelf(pod("q", "", on("b1"), labelled("app=web"))), pod("p", "", spec(`affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 7, podAffinityTerm: `+web+`}]}}`)), []int64{100, 100, 0, 0}, ""},
		{"wanted by those there", scheduler.PreferredPods{}, shelf(pod("q", "", on("b1"), near("podAffinity", "labelSelector: {matchLabels: {app: web}}", "zone"))), pod("p", "", labelled("app=web")), []int64{0, 0, 100, 100}, ""},
		{"unwanted by those there", scheduler.PreferredPods{}, shelf(pod("q", "", on("b1"), spec(`affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 7, podAffinityTerm: `+web+`}]}}`))), pod("p", "", labelled("app=web")), []int64{100, 100, 0, 0}, ""},
		{"soft spread", scheduler.SoftSpread{}, shelf(pod("q", "", on("a1"), labelled("app=web"))), pod("p", "", labelled("app=web"), spread("ScheduleAnyway", "zone", "")), []int64{0, 0, 100, 100}, "such pods near weigh 1"},
		{"soft spread without the label", scheduler.SoftSpread{}, shelf(node("c", big)), pod("p", "", labelled("app=web"), spread("ScheduleAnyway", "zone", "")), []int64{100, 100, 100, 100, 0}, ""},
		{"images", scheduler.ImageLocality{}, []any{node("a", big, image("docker.io/library/web:1", 1000)), node("b", big, image("docker.io/library/web:1", 1000), image("docker.io/me/log:latest", 500)), node("c", big)},
			pod("p", "", spec("containers: [{name: c, image: 'web:1'}, {name: d, image: me/log}]")), []int64{32, 40, 0}, "1000 MiB of the pod's images are there"},
		{"an image that nobody has", scheduler.ImageLocality{}, shelf(), pod("p", "", spec("containers: [{name: c, image: 'web:1'}]")), nil, ""},
		{"by digest", scheduler.ImageLocality{}, []any{node("a", big), node("b", big, image("example.org:5000/web@sha256:abc", 2000))}, pod("p", "", spec("containers: [{name: c, image: 'example.org:5000/web:1@sha256:abc'}]")), []int64{0, 100}, "0 MiB of the pod's images are there"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := snapshot(tt.there...)
			r := tt.score.Rank(s, scheduler.NewPod(tt.pod), s.Nodes())
			if r == nil {
				if tt.want != nil {
					t.Fatalf("it has nothing to say, want %v", tt.want)
				}
				return
			}
			var got []int64
			for i := range s.Nodes() {
				got = append(got, r.Score(i))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("scores (-want +got):\n%s", diff)
			}
			if tt.first != "" && r.Explain(0) != tt.first {
				t.Errorf("explained as %q, want %q", r.Explain(0), tt.first)
			}
		})
	}
}

func TestTheWeightsAreKubernetes(t *testing.T) {
	got := map[string]int64{}
	for _, s := range profile().Scores {
		got[s.Name()] = s.Weight
	}
	for _, ours := range []scheduler.Score{scheduler.Thermal, scheduler.Power, scheduler.Memory, scheduler.Storage, scheduler.Network, scheduler.Energy} {
		delete(got, ours.Name())
	}
	want := map[string]int64{"TaintToleration": 3, "NodeAffinity": 2, "PodTopologySpread": 2, "InterPodAffinity": 2, "LeastAllocated": 1, "BalancedAllocation": 1, "ImageLocality": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
