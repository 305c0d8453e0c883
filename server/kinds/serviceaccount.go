package kinds

import (
	"context"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bramble.dev/bramble/server/admission"
	"bramble.dev/bramble/server/objects"
)

func serviceAccount(d Deps) *objects.Kind {
	return &objects.Kind{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
		Plural:           "serviceaccounts", Singular: "serviceaccount", ShortNames: []string{"sa"},
		Namespaced: true,
		New:        func() objects.Object { return &corev1.ServiceAccount{} },
		NewList:    func() runtime.Object { return &corev1.ServiceAccountList{} },

		Strategy: objects.Strategy{Validate: check(admission.ValidateServiceAccount)},
		Subresources: []objects.Subresource{{
			Name: "token", Verbs: []string{"create"}, GroupVersionKind: authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"),
			New: func() objects.Object { return &authenticationv1.TokenRequest{} },
			Answer: func(ctx context.Context, namespace, name string, obj objects.Object) (objects.Object, error) {
				return d.Reviews.CreateToken(ctx, namespace, name, obj.(*authenticationv1.TokenRequest))
			},
		}},

		Columns: []metav1.TableColumnDefinition{column("Secrets", "string", "The number of Secrets that it names")},
		Row: func(obj objects.Object, _ time.Time) []any {
			return []any{int64(len(obj.(*corev1.ServiceAccount).Secrets))}
		},
	}
}
