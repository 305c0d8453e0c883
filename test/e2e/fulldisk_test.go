package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/test/cluster"
)

// TestServersDiskIsFull writes until the disk takes no more: the client is told
// so, nothing acknowledged is lost, reads and heartbeats go on, and when there
// is room again so do writes.
func TestServersDiskIsFull(t *testing.T) {
	t.Parallel()
	s := cluster.StartServerOnDisk(t, "6m")
	client := s.Client()
	maps := client.CoreV1().ConfigMaps("default")
	leases := client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	lease, err := leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "shelf"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	write := func(i int) error {
		_, err := maps.Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("m%03d", i)}, Data: map[string]string{"k": strings.Repeat("x", 100_000)},
		}, metav1.CreateOptions{})
		return err
	}
	acknowledged := 0
	for err = nil; err == nil && acknowledged < 200; {
		if err = write(acknowledged); err == nil {
			acknowledged++
		}
	}
	if apierrors.ReasonForError(err) == metav1.StatusReasonUnknown || !strings.Contains(err.Error(), "make room on the server's disk") {
		t.Fatalf("after %d writes: %v", acknowledged, err)
	}
	t.Logf("after %d writes: %v", acknowledged, err)

	list, err := maps.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != acknowledged {
		t.Errorf("%d objects can be read, want %d: %v", len(list.Items), acknowledged, err)
	}
	holder := "shelf"
	lease.Spec.HolderIdentity = &holder
	if _, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		t.Errorf("a heartbeat: %v", err)
	}

	s.ResizeDisk("64m")
	cluster.Eventually(t, 30*time.Second, func() string {
		if err := write(acknowledged); err != nil && !apierrors.IsAlreadyExists(err) {
			return err.Error()
		}
		return ""
	})
}
