package kinds

import (
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bramble.dev/bramble/server/admission"
	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/objects"
)

func nodeHardware() *objects.Kind {
	return &objects.Kind{
		GroupVersionKind: api.GroupVersion().WithKind("NodeHardware"),
		Plural:           "nodehardwares", Singular: "nodehardware", ShortNames: []string{"hw"},
		New:     func() objects.Object { return &api.NodeHardware{} },
		NewList: func() runtime.Object { return &api.NodeHardwareList{} },

		Volatile: func(string) bool { return true },
		Strategy: objects.Strategy{
			PrepareUpdate: onBoth(func(h, old *api.NodeHardware) { h.Status = old.Status }),
			Validate:      check(admission.ValidateNodeHardware),
		},
		Subresources: []objects.Subresource{{
			Name: "status", Verbs: statusVerbs(),
			Update:   onBoth(func(obj, into *api.NodeHardware) { into.Status = obj.Status }),
			Validate: checkBoth(admission.ValidateNodeHardwareStatus),
		}},

		Columns: []metav1.TableColumnDefinition{
			column("Temperature", "string", "The processor's temperature"),
			column("Throttled", "string", "Whether the clock is held down now"),
			column("Under-Voltage", "string", "Whether the supply is too low now"),
			wide("Model", "string", "The board"),
			wide("Architecture", "string", "The processor's architecture"),
		},
		Row: func(obj objects.Object, _ time.Time) []any {
			s := &obj.(*api.NodeHardware).Status
			temperature := "<unknown>"
			if s.SoCTemperatureMilliC != nil {
				temperature = fmt.Sprintf("%.1fC", float64(*s.SoCTemperatureMilliC)/1000)
			}
			return []any{temperature, known(s.Throttled), known(s.UnderVoltage),
				orElse(s.Model, "<unknown>"), orElse(s.Architecture, "<unknown>")}
		},
	}
}

func known(b *bool) string {
	if b == nil {
		return "<unknown>"
	}
	return strconv.FormatBool(*b)
}
