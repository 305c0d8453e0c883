package server_test

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"bramble.dev/bramble/server/api"
)

// A heartbeat renews the lease of the node that sends it, by the server's clock;
// without a lease there is none, and once there is one again, it goes on.
func TestHeartbeats(t *testing.T) {
	ctx := t.Context()
	s := start(t, t.TempDir(), nil)
	n := s.join(t, "kitchen", nil)
	if err := n.Beat(ctx); err == nil {
		t.Error("a node without a lease renewed it")
	}
	yesterday := metav1.NewMicroTime(time.Now().Add(-24 * time.Hour))
	create := func() *coordinationv1.Lease {
		t.Helper()
		lease, err := n.CreateLease(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: api.NamespaceNodeLeases, Name: "kitchen"},
			Spec:       coordinationv1.LeaseSpec{RenewTime: &yesterday},
		})
		if err != nil {
			t.Fatal(err)
		}
		return lease
	}
	before := create()
	for range 3 {
		if err := n.Beat(ctx); err != nil {
			t.Fatal(err)
		}
		now, err := n.GetLease(ctx, "kitchen")
		if err != nil {
			t.Fatal(err)
		}
		if !now.Spec.RenewTime.After(before.Spec.RenewTime.Time) || time.Since(now.Spec.RenewTime.Time) > time.Minute {
			t.Errorf("renewed at %v after %v", now.Spec.RenewTime, before.Spec.RenewTime)
		}
		renewers := slices.DeleteFunc(now.ManagedFields, func(m metav1.ManagedFieldsEntry) bool { return !strings.Contains(m.FieldsV1.String(), "f:renewTime") })
		if len(renewers) != 1 {
			t.Errorf("%d managers of the lease's time, want the agent alone: %+v", len(renewers), renewers)
		}
		before = now
	}
	c, err := rest.HTTPClientFor(s.config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	lease := s.config.Host + "/apis/coordination.k8s.io/v1/namespaces/" + api.NamespaceNodeLeases + "/leases/kitchen"
	for _, ask := range []struct {
		method, url string
		want        int
	}{
		{http.MethodPost, s.config.Host + api.HeartbeatsPath, http.StatusForbidden}, // no node
		{http.MethodDelete, lease, http.StatusOK},
	} {
		r, err := http.NewRequestWithContext(ctx, ask.method, ask.url, bytes.NewReader(nil))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode != ask.want {
			t.Errorf("%s %s: %s, want %d (%v)", ask.method, ask.url, resp.Status, ask.want, err)
		}
	}
	if err := n.Beat(ctx); err == nil {
		t.Error("the lease was deleted, and renewed all the same")
	}
	create()
	if err := n.Beat(ctx); err != nil {
		t.Errorf("with a lease again: %v", err)
	}
}
