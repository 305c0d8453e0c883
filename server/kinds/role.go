package kinds

import (
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bramble.dev/bramble/server/admission"
	"bramble.dev/bramble/server/objects"
)

func role() *objects.Kind {
	return &objects.Kind{
		GroupVersionKind: rbacv1.SchemeGroupVersion.WithKind("Role"),
		Plural:           "roles", Singular: "role",
		Namespaced: true,
		New:        func() objects.Object { return &rbacv1.Role{} },
		NewList:    func() runtime.Object { return &rbacv1.RoleList{} },

		ValidateName: admission.ValidateRBACName,
		Strategy:     objects.Strategy{Validate: check(admission.ValidateRole)},

		Columns: []metav1.TableColumnDefinition{created()},
		NoAge:   true,
		Row:     createdRow,
	}
}

// created is the column that Kubernetes has in the place of Age.
func created() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: "Created At", Type: "date", Description: "When it was made"}
}

func createdRow(obj objects.Object, _ time.Time) []any {
	return []any{obj.GetCreationTimestamp().UTC().Format(time.RFC3339)}
}
