package kinds

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"bramble.dev/bramble/server/admission"
	"bramble.dev/bramble/server/objects"
)

func secret() *objects.Kind {
	return &objects.Kind{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Secret"),
		Plural:           "secrets", Singular: "secret",
		Namespaced: true,
		New:        func() objects.Object { return &corev1.Secret{} },
		NewList:    func() runtime.Object { return &corev1.SecretList{} },

		FieldNames: []string{"type"},
		Fields: func(obj objects.Object) fields.Set {
			return fields.Set{"type": string(obj.(*corev1.Secret).Type)}
		},
		Strategy: objects.Strategy{
			Default:        on(admission.DefaultSecret),
			Validate:       check(admission.ValidateSecret),
			ValidateUpdate: checkBoth(admission.ValidateSecretUpdate),
		},

		Columns: []metav1.TableColumnDefinition{
			column("Type", "string", "The kind of data"),
			column("Data", "string", "The number of keys"),
		},
		Row: func(obj objects.Object, _ time.Time) []any {
			s := obj.(*corev1.Secret)
			return []any{string(s.Type), int64(len(s.Data))}
		},
	}
}
