package kinds

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/objects"
)

// placement is computed by the scheduler when it is read: `edgectl why pod`.
func placement(d Deps) *objects.Kind {
	return &objects.Kind{
		GroupVersionKind: api.GroupVersion().WithKind("Placement"),
		Plural:           "placements", Singular: "placement",
		Namespaced: true,
		Verbs:      []string{"get"},
		New:        func() objects.Object { return &api.Placement{} },
		NewList:    func() runtime.Object { return &api.PlacementList{} },

		Columns: []metav1.TableColumnDefinition{
			column("Node", "string", "The node that the pod is bound to"),
			column("Message", "string", "Why"),
		},
		NoAge: true,
		Row: func(obj objects.Object, _ time.Time) []any {
			s := &obj.(*api.Placement).Status
			return []any{orElse(s.NodeName, "<none>"), s.Message}
		},
		Read: func(ctx context.Context, namespace, name string) (objects.Object, error) {
			return d.Placement(ctx, namespace, name)
		},
	}
}
