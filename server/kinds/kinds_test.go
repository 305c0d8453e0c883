package kinds_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/kinds"
	"bramble.dev/bramble/server/objects"
	"bramble.dev/bramble/server/store"
)

func deps() kinds.Deps {
	return kinds.Deps{Placement: func(_ context.Context, ns, name string) (*api.Placement, error) {
		return &api.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Status: api.PlacementStatus{Message: "why"}}, nil
	}}
}

// Each row of the table must be complete and agree with itself and the scheme.
func TestTheTableIsConsistent(t *testing.T) {
	scheme := api.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{rbacv1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range kinds.All(deps()) {
		obj := k.New()
		if gvks, _, err := scheme.ObjectKinds(obj); err != nil || gvks[0] != k.GroupVersionKind {
			t.Errorf("%s: New gives %v, %v", k.Resource(), gvks, err)
		}
		if k.NewList == nil && k.Answer != nil {
			continue
		}
		if gvks, _, err := scheme.ObjectKinds(k.NewList()); err != nil || gvks[0].Kind != k.Kind+"List" {
			t.Errorf("%s: NewList gives %v, %v", k.Resource(), gvks, err)
		}
		if k.Plural != strings.ToLower(k.Plural) || k.Singular != strings.ToLower(k.Kind) {
			t.Errorf("%s: names %q, %q", k.Kind, k.Plural, k.Singular)
		}
		if got := len(k.Row(obj, time.Unix(0, 0))); got != len(k.Columns) {
			t.Errorf("%s: a row has %d cells for %d columns", k.Resource(), got, len(k.Columns))
		}
		if k.Fields != nil || k.FieldNames != nil {
			got := slices.Sorted(maps.Keys(k.Fields(obj)))
			want := slices.Sorted(slices.Values(k.FieldNames))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: fields (-names +given):\n%s", k.Resource(), diff)
			}
		}
		for _, sub := range k.Subresources {
			if sub.Verbs == nil || sub.Name == "status" && (sub.Update == nil || sub.Validate == nil) {
				t.Errorf("%s/%s is incomplete", k.Resource(), sub.Name)
			}
		}
	}
}

func find(t *testing.T, resource string) *objects.Kind {
	t.Helper()
	for _, k := range kinds.All(deps()) {
		if k.Resource() == resource {
			return k
		}
	}
	t.Fatalf("no kind %s", resource)
	return nil
}

func TestWhatIsVolatile(t *testing.T) {
	for _, tt := range []struct {
		resource, namespace string
		want                bool
	}{
		{"leases.coordination.k8s.io", "kube-node-lease", true},
		{"leases.coordination.k8s.io", "default", false},
		{"events", "default", true},
		{"nodehardwares.edge.bramble.dev", "", true},
		{"pods", "default", false},
		{"nodes", "", false},
		{"secrets", "kube-node-lease", false},
	} {
		k := find(t, tt.resource)
		if got := k.Volatile != nil && k.Volatile(tt.namespace); got != tt.want {
			t.Errorf("%s in %q: volatile is %v", tt.resource, tt.namespace, got)
		}
	}
}

func TestPodGrace(t *testing.T) {
	grace := find(t, "pods").Grace
	ten, zero, minus, five := int64(10), int64(0), int64(-3), int64(5)
	running := func(spec *int64) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n", TerminationGracePeriodSeconds: spec}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	}
	done := running(&ten)
	done.Status.Phase = corev1.PodSucceeded
	for _, tt := range []struct {
		name      string
		pod       *corev1.Pod
		requested *int64
		want      int64
	}{
		{"as the pod says", running(&ten), nil, 10},
		{"as the request says", running(&ten), &five, 5},
		{"at once", running(&ten), &zero, 0},
		{"negative", running(&minus), nil, 1},
		{"no node", &corev1.Pod{Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &ten}}, nil, 0},
		{"ended", done, &five, 0},
		{"nothing said", running(nil), nil, 30},
	} {
		if got := grace(tt.pod, tt.requested); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

var now = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func cells(t *testing.T, resource string, obj objects.Object) string {
	t.Helper()
	var words []string
	for _, c := range find(t, resource).Row(obj, now) {
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		words = append(words, strings.Trim(string(b), `"`))
	}
	return strings.Join(words, " | ")
}

func TestNodeRow(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: ago(time.Hour), Labels: map[string]string{
		"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "edge", "node-role.kubernetes.io/": ""}}}
	n.Status.NodeInfo = corev1.NodeSystemInfo{KubeletVersion: "v1.2.3", OSImage: "Debian 13", KernelVersion: "6.12", ContainerRuntimeVersion: "podman://5.4"}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "x"}, {Type: corev1.NodeInternalIP, Address: "192.0.2.7"}}
	for _, tt := range []struct {
		ready  corev1.ConditionStatus
		cordon bool
		want   string
	}{
		{"", false, "Unknown"},
		{corev1.ConditionTrue, false, "Ready"},
		{corev1.ConditionTrue, true, "Ready,SchedulingDisabled"},
		{corev1.ConditionFalse, false, "NotReady"},
		{corev1.ConditionUnknown, true, "NotReady,SchedulingDisabled"},
	} {
		n.Spec.Unschedulable, n.Status.Conditions = tt.cordon, nil
		if tt.ready != "" {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: tt.ready}}
		}
		want := tt.want + " | edge,worker | 60m | v1.2.3 | 192.0.2.7 | \\u003cnone\\u003e | Debian 13 | 6.12 | podman://5.4"
		if got := cells(t, "nodes", n); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestEventRow(t *testing.T) {
	e := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "e.1"}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "web", FieldPath: "spec.containers{a}"},
		Type: "Warning", Reason: "BackOff", Message: "again\n", Count: 5, FirstTimestamp: ago(time.Hour), LastTimestamp: ago(2 * time.Minute),
		Source: corev1.EventSource{Component: "agent", Host: "n1"},
	}
	if got, want := cells(t, "events", e), "2m | Warning | BackOff | pod/web | spec.containers{a} | agent, n1 | again | 60m | 5 | e.1"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	fresh := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e.2"}, EventTime: metav1.NewMicroTime(now.Add(-time.Hour)), ReportingController: "c", InvolvedObject: corev1.ObjectReference{Kind: "Node"}}
	if got, want := cells(t, "events", fresh), "60m |  |  | node |  | c |  | 60m | 1 | e.2"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	fresh.Series = &corev1.EventSeries{Count: 9, LastObservedTime: metav1.NewMicroTime(now.Add(-time.Minute))}
	if got := cells(t, "events", fresh); !strings.HasPrefix(got, "60s |") || !strings.Contains(got, "| 60m | 9 |") {
		t.Errorf("got %s", got)
	}
}

func TestOtherRows(t *testing.T) {
	holder, hot, yes := "n1", int64(61_234), true
	for _, tt := range []struct {
		resource string
		obj      objects.Object
		want     string
	}{
		{"namespaces", &corev1.Namespace{Status: corev1.NamespaceStatus{Phase: "Active"}}, "Active"},
		{"configmaps", &corev1.ConfigMap{Data: map[string]string{"a": ""}, BinaryData: map[string][]byte{"b": nil}}, "2"},
		{"secrets", &corev1.Secret{Type: "Opaque", Data: map[string][]byte{"b": nil}}, "Opaque | 1"},
		{"leases.coordination.k8s.io", &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}, "n1"},
		{"leases.coordination.k8s.io", &coordinationv1.Lease{}, ""},
		{"nodehardwares.edge.bramble.dev", &api.NodeHardware{Status: api.NodeHardwareStatus{SoCTemperatureMilliC: &hot, Throttled: &yes, Model: "Pi"}}, `61.2C | true | \u003cunknown\u003e | Pi | \u003cunknown\u003e`},
		{"placements.edge.bramble.dev", &api.Placement{Status: api.PlacementStatus{Message: "0/1"}}, `\u003cnone\u003e | 0/1`},
	} {
		if got := cells(t, tt.resource, tt.obj); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.resource, got, tt.want)
		}
	}
}

// A pod goes through its life in a real registry on a real store.
func TestPodInTheRegistry(t *testing.T) {
	ctx := t.Context()
	r := registry(t)
	pods, _ := r.Kind("", "pods")
	namespaces, _ := r.Kind("", "namespaces")
	if _, err := r.Create(ctx, namespaces, "", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, objects.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := r.Create(ctx, pods, "default", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "Bad"}, Spec: corev1.PodSpec{HostPID: true}}, objects.WriteOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "metadata.name") || !strings.Contains(err.Error(), "spec.hostPID: Forbidden") || !strings.Contains(err.Error(), "spec.containers: Required") {
		t.Fatalf("got %v, want all three errors at once", err)
	}
	res, err := r.Create(ctx, pods, "default", &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.PodSpec{Subdomain: "x", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}, objects.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Warnings) != 1 {
		t.Errorf("got warnings %q, want one", res.Warnings)
	}
	p := decode(t, res.Stored)
	if p.Status.Phase != corev1.PodPending || p.Generation != 1 || p.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		t.Errorf("got %+v", p)
	}
	bind := func(current objects.Object) (objects.Object, error) {
		pod := current.(*corev1.Pod)
		pod.Spec.NodeName, pod.Labels = "n1", map[string]string{"not": "taken over"}
		return pod, nil
	}
	if res, err = r.Update(ctx, pods, "binding", "default", "web", bind, objects.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if p = decode(t, res.Stored); p.Spec.NodeName != "n1" || len(p.Labels) > 0 {
		t.Errorf("got node %q and labels %v", p.Spec.NodeName, p.Labels)
	}
	report := func(current objects.Object) (objects.Object, error) {
		pod := current.(*corev1.Pod)
		pod.Status.Phase, pod.Spec.NodeName = corev1.PodRunning, "n2"
		return pod, nil
	}
	if res, err = r.Update(ctx, pods, "status", "default", "web", report, objects.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if p = decode(t, res.Stored); p.Status.Phase != corev1.PodRunning || p.Spec.NodeName != "n1" {
		t.Errorf("got phase %s on node %q", p.Status.Phase, p.Spec.NodeName)
	}
	move := func(current objects.Object) (objects.Object, error) {
		pod := current.(*corev1.Pod)
		pod.Spec.NodeName = "n2"
		return pod, nil
	}
	if _, err = r.Update(ctx, pods, "", "default", "web", move, objects.WriteOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a pod may be moved: %v", err)
	}
	if _, deleted, err := r.Delete(ctx, pods, "default", "web", metav1.DeleteOptions{}); err != nil || deleted {
		t.Errorf("a running pod is deleted at once: %v, %v", deleted, err)
	}
}

func registry(t *testing.T) *objects.Registry {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	r, err := objects.NewRegistry(s, kinds.All(deps()), objects.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func decode(t *testing.T, s objects.Stored) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{}
	if err := json.Unmarshal(s.Body.Bytes(), p); err != nil {
		t.Fatal(err)
	}
	return p
}
