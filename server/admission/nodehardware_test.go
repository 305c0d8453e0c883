package admission_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/admission"
	"bramble.dev/bramble/server/api"
)

func TestValidateNodeHardware(t *testing.T) {
	negative := int64(-1)
	condition := func(name string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: name, Status: status}
	}
	for _, tt := range []struct {
		name   string
		status api.NodeHardwareStatus
		want   string // "": it is taken
	}{
		{"nothing", api.NodeHardwareStatus{}, ""},
		{"of a board", api.NodeHardwareStatus{Model: "Raspberry Pi 5", Conditions: []metav1.Condition{condition("Hot", "True"), condition("OnBattery", "False")}}, ""},
		{"a negative count", api.NodeHardwareStatus{StorageErrors: &negative}, "status.storageErrors: Invalid value: -1"},
		{"a long model", api.NodeHardwareStatus{Model: strings.Repeat("x", 257)}, "status.model: Too long"},
		{"many conditions", api.NodeHardwareStatus{Conditions: make([]metav1.Condition, 33)}, "status.conditions: Too many: 33"},
		{"one twice", api.NodeHardwareStatus{Conditions: []metav1.Condition{condition("Hot", "True"), condition("Hot", "False")}}, `status.conditions[1].type: Duplicate value: "Hot"`},
		{"no name", api.NodeHardwareStatus{Conditions: []metav1.Condition{condition("too hot", "True")}}, "status.conditions[0].type: Invalid value"},
		{"no status", api.NodeHardwareStatus{Conditions: []metav1.Condition{condition("Hot", "yes")}}, `status.conditions[0].status: Unsupported value: "yes"`},
		{"a long message", api.NodeHardwareStatus{Conditions: []metav1.Condition{{Type: "Hot", Status: "True", Message: strings.Repeat("x", 1025)}}}, "status.conditions[0].message: Too long"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			errs := admission.ValidateNodeHardware(&api.NodeHardware{Status: tt.status})
			switch got := errs.ToAggregate(); {
			case tt.want == "" && got != nil, tt.want != "" && (got == nil || !strings.Contains(got.Error(), tt.want)):
				t.Errorf("got %v, want %q", got, tt.want)
			}
		})
	}
}
