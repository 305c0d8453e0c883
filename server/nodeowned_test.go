package server_test

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/client"
)

// TestANodeTakesItsOwnWithIt deletes a node whose agent has reported.
func TestANodeTakesItsOwnWithIt(t *testing.T) {
	ctx := t.Context()
	s := start(t, t.TempDir(), nil)
	n := s.join(t, "kitchen", nil)
	if _, err := n.CreateLease(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: api.NamespaceNodeLeases, Name: "kitchen"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.CreateNodeHardware(ctx, &api.NodeHardware{ObjectMeta: metav1.ObjectMeta{Name: "kitchen"}}); err != nil {
		t.Fatal(err)
	}
	report, err := client.MergePatch(map[string]any{"status": map[string]any{"socTemperatureMilliC": 45000, "batteryPercent": nil}})
	if err != nil {
		t.Fatal(err)
	}
	if h, err := n.PatchNodeHardwareStatus(ctx, "kitchen", report); err != nil || h.Status.SoCTemperatureMilliC == nil || len(h.OwnerReferences) != 1 {
		t.Fatalf("%+v, %v", h, err)
	}
	if err := s.admin(t).CoreV1().Nodes().Delete(ctx, "kitchen", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "lease and hardware are gone", func() bool {
		_, lease := n.GetLease(ctx, "kitchen")
		_, hardware := n.GetNodeHardware(ctx, "kitchen")
		return apierrors.IsNotFound(lease) && apierrors.IsNotFound(hardware)
	})
}
