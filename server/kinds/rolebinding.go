package kinds

import (
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bramble.dev/bramble/server/admission"
	"bramble.dev/bramble/server/objects"
)

func roleBinding() *objects.Kind {
	return &objects.Kind{
		GroupVersionKind: rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
		Plural:           "rolebindings", Singular: "rolebinding",
		Namespaced: true,
		New:        func() objects.Object { return &rbacv1.RoleBinding{} },
		NewList:    func() runtime.Object { return &rbacv1.RoleBindingList{} },

		ValidateName: admission.ValidateRBACName,
		Strategy: objects.Strategy{
			Default:        on(admission.DefaultRoleBinding),
			Validate:       check(admission.ValidateRoleBinding),
			ValidateUpdate: checkBoth(admission.ValidateRoleBindingUpdate),
		},

		Columns: bindingColumns(),
		Row: func(obj objects.Object, _ time.Time) []any {
			b := obj.(*rbacv1.RoleBinding)
			return bindingRow(b.RoleRef, b.Subjects)
		},
	}
}

func bindingColumns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		column("Role", "string", "The role that is bound"),
		wide("Users", "string", "The users that it is bound to"),
		wide("Groups", "string", "The groups that it is bound to"),
		wide("ServiceAccounts", "string", "The service accounts that it is bound to"),
	}
}

func bindingRow(ref rbacv1.RoleRef, subjects []rbacv1.Subject) []any {
	var users, groups, accounts []string
	for _, s := range subjects {
		switch s.Kind {
		case rbacv1.UserKind:
			users = append(users, s.Name)
		case rbacv1.GroupKind:
			groups = append(groups, s.Name)
		case rbacv1.ServiceAccountKind:
			accounts = append(accounts, s.Namespace+"/"+s.Name)
		}
	}
	return []any{ref.Kind + "/" + ref.Name, strings.Join(users, ", "), strings.Join(groups, ", "), strings.Join(accounts, ", ")}
}
