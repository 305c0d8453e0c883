package kinds

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"bramble.dev/bramble/server/admission"
	"bramble.dev/bramble/server/objects"
)

func namespace() *objects.Kind {
	return &objects.Kind{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace"),
		Plural:           "namespaces", Singular: "namespace", ShortNames: []string{"ns"},
		New:     func() objects.Object { return &corev1.Namespace{} },
		NewList: func() runtime.Object { return &corev1.NamespaceList{} },
		// Never all at once.
		Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"},

		ValidateName: validation.ValidateNamespaceName,
		FieldNames:   []string{"status.phase"},
		Fields: func(obj objects.Object) fields.Set {
			return fields.Set{"status.phase": string(obj.(*corev1.Namespace).Status.Phase)}
		},
		Strategy: objects.Strategy{
			Default:       on(admission.DefaultNamespace),
			PrepareCreate: on(admission.PrepareNamespace),
			PrepareUpdate: onBoth(admission.PrepareNamespaceUpdate),
			Validate:      check(admission.ValidateNamespace),
		},
		Subresources: []objects.Subresource{
			{
				Name: "status", Verbs: statusVerbs(),
				Update:   onBoth(func(obj, into *corev1.Namespace) { into.Status = obj.Status }),
				Validate: checkBoth(admission.ValidateNamespaceStatus),
			},
			{
				Name: "finalize", Verbs: []string{"update"},
				Update: onBoth(func(obj, into *corev1.Namespace) { into.Spec.Finalizers = obj.Spec.Finalizers }),
			},
		},

		Columns: []metav1.TableColumnDefinition{column("Status", "string", "The status of the namespace")},
		Row: func(obj objects.Object, _ time.Time) []any {
			return []any{string(obj.(*corev1.Namespace).Status.Phase)}
		},
	}
}
