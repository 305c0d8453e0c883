package kinds

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bramble.dev/bramble/server/admission"
	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/objects"
)

// lease: those of nodes are heartbeats and never written to disk; the others
// are leader elections, which must outlive a restart.
func lease() *objects.Kind {
	return &objects.Kind{
		GroupVersionKind: coordinationv1.SchemeGroupVersion.WithKind("Lease"),
		Plural:           "leases", Singular: "lease",
		Namespaced: true,
		New:        func() objects.Object { return &coordinationv1.Lease{} },
		NewList:    func() runtime.Object { return &coordinationv1.LeaseList{} },

		Volatile: func(namespace string) bool { return namespace == api.NamespaceNodeLeases },
		Strategy: objects.Strategy{Validate: check(admission.ValidateLease)},

		Columns: []metav1.TableColumnDefinition{column("Holder", "string", "Who holds the lease")},
		Row: func(obj objects.Object, _ time.Time) []any {
			holder := ""
			if h := obj.(*coordinationv1.Lease).Spec.HolderIdentity; h != nil {
				holder = *h
			}
			return []any{holder}
		},
	}
}
