package kinds

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bramble.dev/bramble/server/admission"
	"bramble.dev/bramble/server/objects"
)

func configMap() *objects.Kind {
	return &objects.Kind{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		Plural:           "configmaps", Singular: "configmap", ShortNames: []string{"cm"},
		Namespaced: true,
		New:        func() objects.Object { return &corev1.ConfigMap{} },
		NewList:    func() runtime.Object { return &corev1.ConfigMapList{} },

		Strategy: objects.Strategy{
			Validate:       check(admission.ValidateConfigMap),
			ValidateUpdate: checkBoth(admission.ValidateConfigMapUpdate),
		},

		Columns: []metav1.TableColumnDefinition{column("Data", "string", "The number of keys")},
		Row: func(obj objects.Object, _ time.Time) []any {
			cm := obj.(*corev1.ConfigMap)
			return []any{int64(len(cm.Data) + len(cm.BinaryData))}
		},
	}
}
