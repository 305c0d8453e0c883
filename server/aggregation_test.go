package server_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server"
	"bramble.dev/bramble/server/kinds"
	"bramble.dev/bramble/server/objects"
	"bramble.dev/bramble/server/store"
)

// failsOnce refuses the first update of anything.
type failsOnce struct{ done atomic.Bool }

func (f *failsOnce) Admit(_ context.Context, req objects.Request) error {
	if req.Verb == "update" && !f.done.Swap(true) {
		return errors.New("the disk is busy")
	}
	return nil
}

// The rules of an aggregated role are written though the first try fails and no
// role changes after it.
func TestAggregationIsTriedAgain(t *testing.T) {
	s, err := store.Open(t.Context(), store.Config{Dir: t.TempDir(), Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	registry, err := objects.NewRegistry(s, kinds.All(kinds.Deps{}), objects.Config{Admit: []objects.Admitter{&failsOnce{}}, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	kind, _ := registry.Kind(rbacv1.GroupName, "clusterroles")
	into := map[string]string{"into": "all"}
	for _, role := range []*rbacv1.ClusterRole{
		{ObjectMeta: metav1.ObjectMeta{Name: "part", Labels: into}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "all"}, AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: into}}}},
	} {
		if _, err := registry.Create(t.Context(), kind, "", role, objects.WriteOptions{FieldManager: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- server.RunAggregation(ctx, registry) }()
	eventually(t, "the rules are gathered", func() bool {
		stored, err := registry.Get(t.Context(), kind, "", "all")
		if err != nil {
			return false
		}
		role, err := kind.Decode(stored.Body.Bytes())
		return err == nil && len(role.(*rbacv1.ClusterRole).Rules) == 1
	})
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}
