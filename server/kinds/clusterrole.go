package kinds

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bramble.dev/bramble/server/admission"
	"bramble.dev/bramble/server/objects"
)

// clusterRole: the rules of one with an aggregationRule are the server's
// (server/aggregation.go).
func clusterRole() *objects.Kind {
	return &objects.Kind{
		GroupVersionKind: rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
		Plural:           "clusterroles", Singular: "clusterrole",
		New:     func() objects.Object { return &rbacv1.ClusterRole{} },
		NewList: func() runtime.Object { return &rbacv1.ClusterRoleList{} },

		ValidateName: admission.ValidateRBACName,
		Strategy:     objects.Strategy{Validate: check(admission.ValidateClusterRole)},

		Columns: []metav1.TableColumnDefinition{created()},
		NoAge:   true,
		Row:     createdRow,
	}
}
