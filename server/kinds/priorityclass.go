package kinds

import (
	"time"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bramble.dev/bramble/server/admission"
	"bramble.dev/bramble/server/objects"
)

func priorityClass() *objects.Kind {
	return &objects.Kind{
		GroupVersionKind: schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"),
		Plural:           "priorityclasses", Singular: "priorityclass", ShortNames: []string{"pc"},
		New:     func() objects.Object { return &schedulingv1.PriorityClass{} },
		NewList: func() runtime.Object { return &schedulingv1.PriorityClassList{} },

		Strategy: objects.Strategy{
			Default:        on(admission.DefaultPriorityClass),
			PrepareCreate:  on(admission.PreparePriorityClass),
			Validate:       check(admission.ValidatePriorityClass),
			ValidateUpdate: checkBoth(admission.ValidatePriorityClassUpdate),
		},

		Columns: []metav1.TableColumnDefinition{
			column("Value", "integer", "The priority of pods of this class"),
			column("Global-Default", "boolean", "Whether it is the class of pods that name none"),
			column("Age", "string", "Time since the class was created"),
			column("PreemptionPolicy", "string", "Whether its pods may take the place of less important ones"),
		},
		NoAge: true, // it is not the last one here
		Row: func(obj objects.Object, now time.Time) []any {
			c := obj.(*schedulingv1.PriorityClass)
			policy := "<none>"
			if c.PreemptionPolicy != nil {
				policy = string(*c.PreemptionPolicy)
			}
			return []any{int64(c.Value), c.GlobalDefault, since(c.CreationTimestamp.Time, now), policy}
		},
	}
}
