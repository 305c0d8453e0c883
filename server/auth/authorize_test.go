package auth_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/auth"
)

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// feed hands out what is put into it.
type feed struct {
	changes []auth.PodChange
	reset   bool
}

func (f *feed) Poll(context.Context) ([]auth.PodChange, bool, error) {
	changes, reset := f.changes, f.reset
	f.changes, f.reset = nil, false
	return changes, reset, nil
}

func (f *feed) put(pods ...*corev1.Pod) {
	for _, p := range pods {
		f.changes = append(f.changes, auth.PodChange{Namespace: p.Namespace, Name: p.Name, Pod: p})
	}
}

func pod(name, node string, adjust func(*corev1.PodSpec)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PodSpec{NodeName: node}}
	if adjust != nil {
		adjust(&p.Spec)
	}
	return p
}

func usesSecret(name string) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		s.Volumes = append(s.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}})
	}
}

func nodeUser(name string) api.User {
	return api.User{Name: api.NodeUserPrefix + name, Groups: []string{api.GroupNodes, api.GroupAuthenticated}}
}

func TestAuthorizer(t *testing.T) {
	f := &feed{}
	f.put(pod("mine", "kitchen", usesSecret("mine")), pod("other", "attic", usesSecret("other")), pod("pending", "", usesSecret("pending")))
	z := auth.NewAuthorizer(auth.NewPodIndex(f), auth.NewRBAC(defaultPolicy()))
	kitchen, admin := nodeUser("kitchen"), api.User{Name: "a", Groups: []string{api.GroupMasters}}
	someone := api.User{Name: "someone", Groups: []string{api.GroupAuthenticated}}
	nobody := api.User{Name: api.UserAnonymous, Groups: []string{"system:unauthenticated"}}
	impostor := api.User{Name: "system:node:kitchen", Groups: []string{api.GroupAuthenticated}}
	for _, test := range []struct {
		user    api.User
		verb    string
		what    string // [group/]resource[/subresource] or a path
		ns, obj string
		fields  string
		want    bool
	}{
		{user: admin, verb: "delete", what: "secrets", ns: "kube-system", obj: "x", want: true},
		{user: admin, verb: "get", what: "/metrics", want: true},
		{user: someone, verb: "get", what: "/openapi/v3/api/v1", want: true},
		{user: someone, verb: "get", what: "/apis", want: true},
		{user: someone, verb: "get", what: "/metrics"},
		{user: someone, verb: "post", what: "/api"},
		{user: someone, verb: "get", what: "pods", ns: "default", obj: "mine"},
		{user: nobody, verb: "get", what: "/api"},
		{user: impostor, verb: "get", what: "nodes", obj: "kitchen"},

		{user: kitchen, verb: "get", what: "/version", want: true},
		{user: kitchen, verb: "get", what: "nodes", obj: "kitchen", want: true},
		{user: kitchen, verb: "create", what: "nodes", want: true},
		{user: kitchen, verb: "patch", what: "nodes/status", obj: "kitchen", want: true},
		{user: kitchen, verb: "watch", what: "nodes", fields: "metadata.name=kitchen", want: true},
		{user: kitchen, verb: "list", what: "nodes"},
		{user: kitchen, verb: "get", what: "nodes", obj: "attic"},
		{user: kitchen, verb: "patch", what: "nodes/status", obj: "attic"},
		{user: kitchen, verb: "get", what: "nodes/proxy", obj: "kitchen"},
		{user: kitchen, verb: "delete", what: "nodes", obj: "kitchen"},

		{user: kitchen, verb: "update", what: "coordination.k8s.io/leases", ns: "kube-node-lease", obj: "kitchen", want: true},
		{user: kitchen, verb: "create", what: "coordination.k8s.io/leases", ns: "kube-node-lease", want: true},
		{user: kitchen, verb: "update", what: "coordination.k8s.io/leases", ns: "kube-node-lease", obj: "attic"},
		{user: kitchen, verb: "update", what: "coordination.k8s.io/leases", ns: "default", obj: "kitchen"},
		{user: kitchen, verb: "update", what: "edge.bramble.dev/nodehardwares/status", obj: "kitchen", want: true},
		{user: kitchen, verb: "update", what: "edge.bramble.dev/nodehardwares", obj: "attic"},

		{user: kitchen, verb: "watch", what: "pods", fields: "spec.nodeName=kitchen", want: true},
		{user: kitchen, verb: "list", what: "pods", fields: "spec.nodeName=kitchen,status.phase!=Failed", want: true},
		{user: kitchen, verb: "list", what: "pods", fields: "spec.nodeName=attic"},
		{user: kitchen, verb: "list", what: "pods", fields: "spec.nodeName!=attic"},
		{user: kitchen, verb: "list", what: "pods"},
		{user: kitchen, verb: "list", what: "pods", fields: "=,"},
		{user: kitchen, verb: "get", what: "pods", ns: "default", obj: "mine", want: true},
		{user: kitchen, verb: "get", what: "pods", ns: "default", obj: "gone", want: true},
		{user: kitchen, verb: "get", what: "pods", ns: "default", obj: "other"},
		{user: kitchen, verb: "get", what: "pods", ns: "default", obj: "pending"},
		{user: kitchen, verb: "patch", what: "pods/status", ns: "default", obj: "mine", want: true},
		{user: kitchen, verb: "patch", what: "pods/status", ns: "default", obj: "other"},
		{user: kitchen, verb: "delete", what: "pods", ns: "default", obj: "mine", want: true},
		{user: kitchen, verb: "delete", what: "pods", ns: "default", obj: "other"},
		{user: kitchen, verb: "patch", what: "pods", ns: "default", obj: "mine"},
		{user: kitchen, verb: "create", what: "pods", ns: "default"},
		{user: kitchen, verb: "create", what: "pods/binding", ns: "default", obj: "mine"},
		{user: kitchen, verb: "get", what: "pods/log", ns: "default", obj: "mine"},
		{user: kitchen, verb: "deletecollection", what: "pods", ns: "default"},

		{user: kitchen, verb: "get", what: "secrets", ns: "default", obj: "mine", want: true},
		{user: kitchen, verb: "get", what: "configmaps", ns: "default", obj: "mine"},
		{user: kitchen, verb: "get", what: "secrets", ns: "default", obj: "other"},
		{user: kitchen, verb: "get", what: "secrets", ns: "default", obj: "pending"},
		{user: kitchen, verb: "get", what: "secrets", ns: "kube-system", obj: "mine"},
		{user: kitchen, verb: "list", what: "secrets", ns: "default"},
		{user: kitchen, verb: "update", what: "secrets", ns: "default", obj: "mine"},

		{user: kitchen, verb: "create", what: "events", ns: "default", want: true},
		{user: kitchen, verb: "patch", what: "events", ns: "default", obj: "e", want: true},
		{user: kitchen, verb: "list", what: "events", ns: "default"},
		{user: kitchen, verb: "get", what: "namespaces", obj: "default"},
		{user: kitchen, verb: "create", what: "edge.bramble.dev/jointokens"},
	} {
		a := auth.Attributes{User: test.user, Verb: test.verb, Namespace: test.ns, Name: test.obj, Fields: test.fields}
		if strings.HasPrefix(test.what, "/") {
			a.Path = test.what
		} else {
			parts := strings.Split(test.what, "/")
			if strings.Contains(parts[0], ".") {
				a.Group, parts = parts[0], parts[1:]
			}
			a.Resource = parts[0]
			if len(parts) > 1 {
				a.Subresource = parts[1]
			}
		}
		if got, reason, err := z.Authorize(t.Context(), a); got != test.want || err != nil {
			t.Errorf("%s %s %s %s/%s %s: %v (%s), %v", test.user.Name, test.verb, test.what, test.ns, test.obj, test.fields, got, reason, err)
		}
	}
}

func TestUsesEveryReference(t *testing.T) {
	ref := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	f := &feed{}
	f.put(pod("p", "kitchen", func(s *corev1.PodSpec) {
		s.ImagePullSecrets = []corev1.LocalObjectReference{ref("s-pull")}
		s.Volumes = []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: ref("c-volume")}}},
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s-volume"}}},
			{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: ref("c-projected")}},
				{Secret: &corev1.SecretProjection{LocalObjectReference: ref("s-projected")}},
			}}}},
			{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		}
		s.InitContainers = []corev1.Container{{EnvFrom: []corev1.EnvFromSource{
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("c-from")}},
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref("s-from")}},
		}}}
		s.Containers = []corev1.Container{{Env: []corev1.EnvVar{
			{Name: "A", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref("c-env")}}},
			{Name: "B", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref("s-env")}}},
			{Name: "C", Value: "plain"},
		}}}
	}))
	x := auth.NewPodIndex(f)
	for _, name := range []string{"s-pull", "c-volume", "s-volume", "c-projected", "s-projected", "c-from", "s-from", "c-env", "s-env"} {
		right, wrong := "secrets", "configmaps"
		if name[0] == 'c' {
			right, wrong = wrong, right
		}
		if ok, err := x.Uses(t.Context(), "kitchen", right, "default", name); !ok || err != nil {
			t.Errorf("%s %s: %v, %v", right, name, ok, err)
		}
		if ok, _ := x.Uses(t.Context(), "kitchen", wrong, "default", name); ok {
			t.Errorf("%s %s is not used", wrong, name)
		}
	}
	f.changes = []auth.PodChange{{Namespace: "default", Name: "p"}}
	if ok, _ := x.Uses(t.Context(), "kitchen", "secrets", "default", "s-env"); ok {
		t.Error("a pod that is gone still uses its Secret")
	}
}

// The index answers as a look at all pods would, whatever came and went.
func TestPodIndexProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &feed{}
		x := auth.NewPodIndex(f)
		all := map[string]*corev1.Pod{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			name := fmt.Sprint("p", rapid.IntRange(0, 4).Draw(t, "pod"))
			p := pod(name, rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "node"), usesSecret(rapid.SampledFrom([]string{"s", "t"}).Draw(t, "secret")))
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				delete(all, name)
				f.changes = append(f.changes, auth.PodChange{Namespace: "default", Name: name})
			case 1: // the log was lost: all anew
				f.changes, f.reset = nil, true
				for _, p := range all {
					f.put(p)
				}
			default:
				all[name] = p
				f.put(p)
			}
			if rapid.Bool().Draw(t, "ask") {
				compare(t, x, all)
			}
		}
		compare(t, x, all)
	})
}

func compare(t *rapid.T, x *auth.PodIndex, all map[string]*corev1.Pod) {
	for _, node := range []string{"a", "b"} {
		for _, secret := range []string{"s", "t"} {
			want := false
			for _, p := range all {
				want = want || p.Spec.NodeName == node && p.Spec.Volumes[0].Secret.SecretName == secret
			}
			if got, _ := x.Uses(context.Background(), node, "secrets", "default", secret); got != want {
				t.Fatalf("%s uses %s: %v, want %v", node, secret, got, want)
			}
		}
	}
}

func TestNodeRestriction(t *testing.T) {
	f := &feed{}
	mine, other := pod("mine", "kitchen", nil), pod("other", "attic", nil)
	f.put(mine, other)
	keys, err := auth.OpenNodeKeys(newMemory(), prefix("10.100.0.0/14"), 24)
	if err != nil {
		t.Fatal(err)
	}
	r := auth.NewNodeRestriction(auth.NewPodIndex(f), keys)
	node := func(name string, adjust func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{PodCIDR: "10.100.0.0/24", PodCIDRs: []string{"10.100.0.0/24"}}}
		if adjust != nil {
			adjust(n)
		}
		return n
	}
	label := func(key string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Labels = map[string]string{key: "x"} }
	}
	event := func(kind, name string) *corev1.Event {
		return &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: "default", Name: name}}
	}
	taint := func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}} }
	for _, test := range []struct {
		name string
		w    auth.Write
		want string // in the error; "": allowed
	}{
		{"its own node", auth.Write{Verb: "create", Obj: node("kitchen", taint)}, ""},
		{"another node", auth.Write{Verb: "create", Obj: node("attic", nil)}, "may not write node attic"},
		{"addresses at will", auth.Write{Verb: "create", Obj: node("kitchen", func(n *corev1.Node) { n.Spec.PodCIDR = "10.0.0.0/8" })}, "podCIDR"},
		{"own label", auth.Write{Verb: "update", Obj: node("kitchen", label("zone")), Old: node("kitchen", nil)}, ""},
		{"its architecture", auth.Write{Verb: "update", Obj: node("kitchen", label("kubernetes.io/arch")), Old: node("kitchen", nil)}, ""},
		{"its model", auth.Write{Verb: "create", Obj: node("kitchen", label("edge.bramble.dev/model"))}, ""},
		{"its camera", auth.Write{Verb: "update", Obj: node("kitchen", label("edge.bramble.dev/camera")), Old: node("kitchen", nil)}, ""},
		{"its camera away", auth.Write{Verb: "update", Obj: node("kitchen", nil), Old: node("kitchen", label("edge.bramble.dev/camera"))}, ""},
		{"its processor", auth.Write{Verb: "update", Obj: node("kitchen", label("feature.node.kubernetes.io/cpu-cpuid.AES")), Old: node("kitchen", nil)}, ""},
		{"another feature", auth.Write{Verb: "update", Obj: node("kitchen", label("feature.node.kubernetes.io/trusted")), Old: node("kitchen", nil)}, "label"},
		{"another label of ours", auth.Write{Verb: "update", Obj: node("kitchen", label("edge.bramble.dev/site")), Old: node("kitchen", nil)}, "label"},
		{"of a domain below ours", auth.Write{Verb: "update", Obj: node("kitchen", label("x.edge.bramble.dev/model")), Old: node("kitchen", nil)}, "label"},
		{"a domain that ends alike", auth.Write{Verb: "update", Obj: node("kitchen", label("notk8s.io/x")), Old: node("kitchen", nil)}, ""},
		{"zone", auth.Write{Verb: "update", Obj: node("kitchen", label("topology.kubernetes.io/zone")), Old: node("kitchen", nil)}, "label"},
		{"role", auth.Write{Verb: "create", Obj: node("kitchen", label("node-role.kubernetes.io/x"))}, "label"},
		{"restricted label", auth.Write{Verb: "update", Obj: node("kitchen", label("a.node-restriction.kubernetes.io/x")), Old: node("kitchen", nil)}, "label"},
		{"label away", auth.Write{Verb: "update", Obj: node("kitchen", nil), Old: node("kitchen", label("node-restriction.kubernetes.io/x"))}, "label"},
		{"taint away", auth.Write{Verb: "update", Obj: node("kitchen", nil), Old: node("kitchen", taint)}, "taints"},
		{"podCIDR", auth.Write{Verb: "update", Obj: node("kitchen", func(n *corev1.Node) { n.Spec.PodCIDR = "" }), Old: node("kitchen", nil)}, "podCIDR"},
		{"uncordon", auth.Write{Verb: "update", Obj: node("kitchen", nil), Old: node("kitchen", func(n *corev1.Node) { n.Spec.Unschedulable = true })}, "schedulable"},
		{"status", auth.Write{Verb: "update", Subresource: "status", Obj: node("kitchen", nil), Old: node("kitchen", nil)}, ""},
		{"another's status", auth.Write{Verb: "update", Subresource: "status", Obj: node("attic", nil), Old: node("attic", nil)}, "attic"},
		{"delete", auth.Write{Verb: "delete", Old: node("kitchen", nil)}, "delete"},

		{"pod status", auth.Write{Verb: "update", Subresource: "status", Obj: mine, Old: mine}, ""},
		{"pod delete", auth.Write{Verb: "delete", Old: mine}, ""},
		{"another's pod", auth.Write{Verb: "update", Subresource: "status", Obj: mine, Old: other}, "not bound to it"},
		{"another's pod delete", auth.Write{Verb: "delete", Old: other}, "not bound to it"},
		{"pod itself", auth.Write{Verb: "update", Obj: mine, Old: mine}, "only the status"},
		{"new pod", auth.Write{Verb: "create", Obj: mine}, "only the status"},

		{"event", auth.Write{Verb: "create", Obj: event("Pod", "mine")}, ""},
		{"event of a pod that is gone", auth.Write{Verb: "create", Obj: event("Pod", "gone")}, ""},
		{"event of the node", auth.Write{Verb: "create", Obj: event("Node", "kitchen")}, ""},
		{"event of another's pod", auth.Write{Verb: "create", Obj: event("Pod", "other")}, "pod other"},
		{"event of another node", auth.Write{Verb: "create", Obj: event("Node", "attic")}, "node attic"},
		{"event of a Secret", auth.Write{Verb: "create", Obj: event("Secret", "x")}, "secret x"},
		{"event taken over", auth.Write{Verb: "update", Obj: event("Pod", "mine"), Old: event("Pod", "other")}, "pod other"},

		{"lease", auth.Write{Verb: "create", Obj: &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "kitchen"}}}, ""},
		{"another's lease", auth.Write{Verb: "create", Obj: &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "attic"}}}, "another's"},
		{"another's hardware", auth.Write{Verb: "create", Obj: &api.NodeHardware{ObjectMeta: metav1.ObjectMeta{Name: "attic"}}}, "another's"},
		{"a secret", auth.Write{Verb: "create", Obj: &corev1.Secret{}}, "may not write"},
	} {
		err := r.Admit(api.WithUser(t.Context(), nodeUser("kitchen")), test.w)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
	if err := r.Admit(t.Context(), auth.Write{Verb: "create", Obj: node("attic", nil)}); err != nil {
		t.Errorf("the server itself: %v", err)
	}
	bare := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "attic"}}
	if err := r.Admit(api.WithUser(t.Context(), nodeUser("attic")), auth.Write{Verb: "create", Obj: bare}); err != nil || bare.Spec.PodCIDR != "10.100.1.0/24" {
		t.Errorf("a Node without podCIDR got %q, %v", bare.Spec.PodCIDR, err)
	}
}
