package admission_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bramble.dev/bramble/server/admission"
	"bramble.dev/bramble/server/api"
)

// want compares errors by the beginning of their lines.
func want(t *testing.T, name string, errs field.ErrorList, prefixes ...string) {
	t.Helper()
	got := lines(errs)
	slices.Sort(prefixes)
	if len(got) != len(prefixes) {
		t.Errorf("%s: got %d errors, want %d:\n%s", name, len(got), len(prefixes), strings.Join(got, "\n"))
		return
	}
	for i := range got {
		if !strings.HasPrefix(got[i], prefixes[i]) {
			t.Errorf("%s: got %s, want %s...", name, got[i], prefixes[i])
		}
	}
}

func TestConfigMap(t *testing.T) {
	yes := true
	want(t, "fine", admission.ValidateConfigMap(&corev1.ConfigMap{Data: map[string]string{"a.b-c_d": ""}}))
	want(t, "keys", admission.ValidateConfigMap(&corev1.ConfigMap{
		Data: map[string]string{"a b": "", "..": "", "x": ""}, BinaryData: map[string][]byte{"x": nil, "/": nil},
	}), `binaryData[/]: Invalid value`, `data[..]: Invalid value`, `data[a b]: Invalid value`, `data[x]: Invalid value: "x": duplicate of key`)
	big := strings.Repeat("x", 1<<19)
	want(t, "size", admission.ValidateConfigMap(&corev1.ConfigMap{
		Data: map[string]string{"a": big}, BinaryData: map[string][]byte{"b": []byte(big + "y")},
	}), "data: Too long")

	old := &corev1.ConfigMap{Data: map[string]string{"a": "1"}, BinaryData: map[string][]byte{"b": {1}}}
	changed := &corev1.ConfigMap{Data: map[string]string{"a": "2"}, BinaryData: map[string][]byte{"b": {2}}}
	want(t, "mutable", admission.ValidateConfigMapUpdate(changed, old))
	old.Immutable = &yes
	want(t, "immutable", admission.ValidateConfigMapUpdate(changed, old), "immutable: Forbidden", "data: Forbidden", "binaryData: Forbidden")
	want(t, "immutable, the same", admission.ValidateConfigMapUpdate(old.DeepCopy(), old))
}

func TestSecret(t *testing.T) {
	s := &corev1.Secret{Data: map[string][]byte{"a": []byte("old")}, StringData: map[string]string{"a": "new", "b": "c"}}
	admission.DefaultSecret(s)
	if s.Type != corev1.SecretTypeOpaque || s.StringData != nil || string(s.Data["a"]) != "new" || string(s.Data["b"]) != "c" {
		t.Errorf("got %+v", s)
	}
	for _, tt := range []struct {
		kind corev1.SecretType
		data map[string][]byte
		want []string
	}{
		{"my.org/any", nil, nil},
		{corev1.SecretTypeTLS, map[string][]byte{"tls.crt": nil}, []string{"data[tls.key]: Required value"}},
		{corev1.SecretTypeDockerConfigJson, map[string][]byte{".dockerconfigjson": []byte("secret, not JSON")}, []string{`data[.dockerconfigjson]: Invalid value: "<secret contents redacted>"`}},
		{corev1.SecretTypeDockercfg, nil, []string{"data[.dockercfg]: Required value"}},
		{corev1.SecretTypeBasicAuth, nil, []string{"data[password]: Required value", "data[username]: Required value"}},
		{corev1.SecretTypeBasicAuth, map[string][]byte{"password": nil}, nil},
		{corev1.SecretTypeSSHAuth, nil, []string{"data[ssh-privatekey]: Required value"}},
		{corev1.SecretTypeServiceAccountToken, nil, []string{"metadata.annotations[kubernetes.io/service-account.name]: Required value"}},
		{"", map[string][]byte{"a/b": nil}, []string{"data[a/b]: Invalid value"}},
		{"", map[string][]byte{"a": bytes.Repeat([]byte("x"), 1<<20+1)}, []string{"data: Too long"}},
	} {
		want(t, string(tt.kind), admission.ValidateSecret(&corev1.Secret{Type: tt.kind, Data: tt.data}), tt.want...)
	}
	yes := true
	old := &corev1.Secret{Type: "a", Data: map[string][]byte{"a": {1}}, Immutable: &yes}
	want(t, "immutable", admission.ValidateSecretUpdate(&corev1.Secret{Type: "b"}, old), "type: Invalid value", "immutable: Forbidden", "data: Forbidden")
	want(t, "the same", admission.ValidateSecretUpdate(old.DeepCopy(), old))
}

func TestNamespace(t *testing.T) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}
	admission.DefaultNamespace(ns)
	admission.PrepareNamespace(ns)
	admission.PrepareNamespace(ns)
	wanted := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "prod", Labels: map[string]string{"kubernetes.io/metadata.name": "prod"}},
		Spec:       corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"kubernetes"}},
		Status:     corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
	}
	if diff := cmp.Diff(wanted, ns); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	stripped := ns.DeepCopy()
	stripped.Spec.Finalizers, stripped.Status = nil, corev1.NamespaceStatus{}
	admission.PrepareNamespaceUpdate(stripped, ns)
	if diff := cmp.Diff(wanted, stripped); diff != "" {
		t.Errorf("a client may take away what only the server sets (-want +got):\n%s", diff)
	}
	want(t, "fine", admission.ValidateNamespace(ns))
	want(t, "finalizer", admission.ValidateNamespace(&corev1.Namespace{Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"a b"}}}), "spec.finalizers[0]: Invalid value")
	want(t, "status", admission.ValidateNamespaceStatus(ns, ns))
	now := metav1.Now()
	ns.DeletionTimestamp = &now
	want(t, "active though it ends", admission.ValidateNamespaceStatus(ns, ns), "status.phase: Invalid value")
}

func TestNode(t *testing.T) {
	n := &corev1.Node{Spec: corev1.NodeSpec{PodCIDR: "10.100.1.0/24"}, Status: corev1.NodeStatus{Capacity: corev1.ResourceList{"cpu": resource.MustParse("4")}}}
	admission.DefaultNode(n)
	if !slices.Equal(n.Spec.PodCIDRs, []string{"10.100.1.0/24"}) || n.Status.Allocatable.Cpu().String() != "4" {
		t.Errorf("got %+v", n)
	}
	admission.PrepareNode(n)
	admission.PrepareNode(n)
	if diff := cmp.Diff([]corev1.Taint{{Key: "node.kubernetes.io/not-ready", Effect: "NoSchedule"}}, n.Spec.Taints); diff != "" {
		t.Errorf("taints (-want +got):\n%s", diff)
	}
	want(t, "fine", admission.ValidateNode(n))
	bad := &corev1.Node{Spec: corev1.NodeSpec{
		PodCIDR: "10.0.0.0/24", PodCIDRs: []string{"10.1.0.0/24", "x"},
		Taints: []corev1.Taint{{Key: "a", Effect: "NoSchedule"}, {Key: "a", Effect: "NoSchedule"}, {Key: "a b", Value: "c d"}},
	}, Status: corev1.NodeStatus{Capacity: corev1.ResourceList{"cpu": resource.MustParse("-1"), "a b": {}}}}
	want(t, "bad", admission.ValidateNode(bad),
		"spec.podCIDRs[0]: Invalid value", "spec.podCIDRs[1]: Invalid value", "spec.taints[1]: Duplicate value",
		"spec.taints[2].effect: Required value", "spec.taints[2].key: Invalid value", "spec.taints[2].value: Invalid value",
		"status.capacity[a b]: Invalid value", "status.capacity[cpu]: Invalid value")
	moved := n.DeepCopy()
	moved.Spec.PodCIDR, moved.Spec.ProviderID = "10.100.2.0/24", "x"
	want(t, "podCIDR", admission.ValidateNodeUpdate(moved, n), "spec.podCIDR: Forbidden")
	fresh := &corev1.Node{}
	want(t, "podCIDR at first", admission.ValidateNodeUpdate(n, fresh))
	n.Status.Addresses = []corev1.NodeAddress{{Type: "InternalIP", Address: "1"}, {Type: "InternalIP", Address: "1"}}
	want(t, "addresses", admission.ValidateNodeStatus(n, n), "status.addresses[1]: Duplicate value")
}

func TestLease(t *testing.T) {
	zero, minus, holder := int32(0), int32(-1), "x"
	want(t, "fine", admission.ValidateLease(&coordinationv1.Lease{}))
	want(t, "bad", admission.ValidateLease(&coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
		LeaseDurationSeconds: &zero, LeaseTransitions: &minus, PreferredHolder: &holder,
	}}), "spec.leaseDurationSeconds: Invalid value", "spec.leaseTransitions: Invalid value", "spec.preferredHolder: Forbidden")
}

func TestNodeHardware(t *testing.T) {
	cold, minus := int64(-40_000), int64(-1)
	want(t, "cold", admission.ValidateNodeHardware(&api.NodeHardware{Status: api.NodeHardwareStatus{SoCTemperatureMilliC: &cold}}))
	h := &api.NodeHardware{Status: api.NodeHardwareStatus{MemoryAvailableBytes: &minus, UnderVoltageEvents: &minus}}
	want(t, "bad", admission.ValidateNodeHardwareStatus(h, h), "status.memoryAvailableBytes: Invalid value", "status.underVoltageEvents: Invalid value")
}

func TestEvent(t *testing.T) {
	e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}, InvolvedObject: corev1.ObjectReference{Namespace: "a"}}
	admission.DefaultEvent(e)
	if e.Type != corev1.EventTypeNormal {
		t.Errorf("type is %q", e.Type)
	}
	want(t, "fine", admission.ValidateEvent(e))
	other := e.DeepCopy()
	other.InvolvedObject.Namespace = "b"
	want(t, "another namespace", admission.ValidateEvent(other), "involvedObject.namespace: Invalid value")
	want(t, "about no namespace, in one", admission.ValidateEvent(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}}), "involvedObject.namespace: Invalid value")
	want(t, "about a node", admission.ValidateEvent(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}}))

	fresh := e.DeepCopy()
	fresh.EventTime = metav1.NowMicro()
	want(t, "new style", admission.ValidateEvent(fresh), "reportingController: Required value", "reportingInstance: Required value")
	fresh.ReportingController, fresh.ReportingInstance, fresh.Type = "bramble.dev/agent", "n1", "Odd"
	fresh.Reason, fresh.Message = strings.Repeat("r", 129), strings.Repeat("m", 1025)
	want(t, "new style", admission.ValidateEvent(fresh), "message: Too long", "reason: Too long", "type: Unsupported value")
	changed := fresh.DeepCopy()
	changed.Reason, changed.InvolvedObject.Name, changed.Count = "other", "other", 3
	want(t, "changed", admission.ValidateEventUpdate(changed, fresh), "involvedObject: Invalid value", "reason: Invalid value")
	changed = e.DeepCopy()
	changed.Count, changed.Message = 2, "again"
	want(t, "old style counts", admission.ValidateEventUpdate(changed, e))
}
