package kinds

import (
	"context"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/objects"
)

// nodeHardwareHistory is what the server remembers of reports: `edgectl hw NODE`.
func nodeHardwareHistory(d Deps) *objects.Kind {
	return &objects.Kind{
		GroupVersionKind: api.GroupVersion().WithKind("NodeHardwareHistory"),
		Plural:           "nodehardwarehistories", Singular: "nodehardwarehistory",
		Verbs:   []string{"get"},
		New:     func() objects.Object { return &api.NodeHardwareHistory{} },
		NewList: func() runtime.Object { return &api.NodeHardwareHistoryList{} },

		Columns: []metav1.TableColumnDefinition{column("Samples", "string", "How many reports are remembered")},
		NoAge:   true,
		Row: func(obj objects.Object, _ time.Time) []any {
			return []any{strconv.Itoa(len(obj.(*api.NodeHardwareHistory).Samples))}
		},
		Read: func(ctx context.Context, _, name string) (objects.Object, error) {
			return d.BoardHistory(ctx, name)
		},
	}
}
