package kinds

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/objects"
)

// Deps is what kinds that are not merely stored need.
type Deps struct {
	// Placement says why a pod is where it is. Its errors are StatusErrors.
	Placement func(ctx context.Context, namespace, name string) (*api.Placement, error)
	// BoardHistory is what a node's board said in the last hour. Its errors are
	// StatusErrors.
	BoardHistory func(ctx context.Context, node string) (*api.NodeHardwareHistory, error)
	// Reviews answers the kinds of authorization.k8s.io and authentication.k8s.io.
	Reviews Reviews
}

// All returns every kind that is served. The result is the caller's.
func All(d Deps) []*objects.Kind {
	return append([]*objects.Kind{
		namespace(), node(), pod(), configMap(), secret(), event(), serviceAccount(d),
		lease(), priorityClass(),
		role(), clusterRole(), roleBinding(), clusterRoleBinding(),
		nodeHardware(), nodeHardwareHistory(d), placement(d),
	}, reviews(d)...)
}

// The functions below turn those of package admission, which take their own
// kind, into those of the table, which take any.

func on[T objects.Object](f func(T)) func(objects.Object) {
	return func(obj objects.Object) { f(obj.(T)) }
}

func onBoth[T objects.Object](f func(obj, old T)) func(obj, old objects.Object) {
	return func(obj, old objects.Object) { f(obj.(T), old.(T)) }
}

func check[T objects.Object](f func(T) field.ErrorList) func(objects.Object) field.ErrorList {
	return func(obj objects.Object) field.ErrorList { return f(obj.(T)) }
}

func checkBoth[T objects.Object](f func(obj, old T) field.ErrorList) func(obj, old objects.Object) field.ErrorList {
	return func(obj, old objects.Object) field.ErrorList { return f(obj.(T), old.(T)) }
}

// column is one that is always shown, wide one that -o wide adds.
func column(name, kind, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: kind, Description: description}
}

func wide(name, kind, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: kind, Description: description, Priority: 1}
}

// since is how long ago t was, as Kubernetes prints ages.
func since(t, now time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t))
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// statusVerbs are what the subresource status is served with.
func statusVerbs() []string { return []string{"get", "patch", "update"} }
