package server_test

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server"
	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/client"
)

func TestSilentNodeBecomesUnknown(t *testing.T) {
	ctx := t.Context()
	s := start(t, t.TempDir(), func(c *server.Config) { c.NodeLeaseTimeout = 5 * time.Second })
	n := s.join(t, "kitchen", nil)
	if _, err := n.CreateLease(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: api.NamespaceNodeLeases, Name: "kitchen"}}); err != nil {
		t.Fatal(err)
	}
	ready, err := client.StrategicPatch(map[string]any{"status": corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.PatchNodeStatus(ctx, "kitchen", ready); err != nil {
		t.Fatal(err)
	}
	tainted := func() (corev1.ConditionStatus, bool) {
		node, err := n.GetNode(ctx, "kitchen")
		if err != nil || len(node.Status.Conditions) == 0 {
			t.Fatalf("%+v, %v", node, err)
		}
		for _, taint := range node.Spec.Taints {
			if taint.Key == corev1.TaintNodeUnreachable {
				return node.Status.Conditions[0].Status, true
			}
		}
		return node.Status.Conditions[0].Status, false
	}
	if status, _ := tainted(); status != corev1.ConditionTrue {
		t.Fatalf("ready: %s", status)
	}
	eventually(t, "the silent node is Unknown and tainted", func() bool {
		status, unreachable := tainted()
		return status == corev1.ConditionUnknown && unreachable
	})
	if _, err := n.PatchNodeStatus(ctx, "kitchen", ready); err != nil {
		t.Fatal(err)
	}
	eventually(t, "heard again, it loses its taints", func() bool {
		status, unreachable := tainted()
		return status == corev1.ConditionTrue && !unreachable
	})
}
