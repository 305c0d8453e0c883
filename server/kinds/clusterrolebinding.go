package kinds

import (
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bramble.dev/bramble/server/admission"
	"bramble.dev/bramble/server/objects"
)

func clusterRoleBinding() *objects.Kind {
	return &objects.Kind{
		GroupVersionKind: rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
		Plural:           "clusterrolebindings", Singular: "clusterrolebinding",
		New:     func() objects.Object { return &rbacv1.ClusterRoleBinding{} },
		NewList: func() runtime.Object { return &rbacv1.ClusterRoleBindingList{} },

		ValidateName: admission.ValidateRBACName,
		Strategy: objects.Strategy{
			Default:        on(admission.DefaultClusterRoleBinding),
			Validate:       check(admission.ValidateClusterRoleBinding),
			ValidateUpdate: checkBoth(admission.ValidateClusterRoleBindingUpdate),
		},

		Columns: bindingColumns(),
		Row: func(obj objects.Object, _ time.Time) []any {
			b := obj.(*rbacv1.ClusterRoleBinding)
			return bindingRow(b.RoleRef, b.Subjects)
		},
	}
}
