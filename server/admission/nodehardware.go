package admission

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bramble.dev/bramble/server/api"
)

// What a report may hold: the server remembers an hour of them of each node.
const (
	maxBoardConditions = 32
	maxBoardText       = 256  // of a model, in bytes
	maxBoardMessage    = 1024 // of a condition
)

// ValidateNodeHardware checks that counts are no less than 0, and that there is not too
// much of anything. A temperature is not judged here: a sensor that lies is the
// scheduler's matter.
func ValidateNodeHardware(h *api.NodeHardware) field.ErrorList {
	s := &h.Status
	status := field.NewPath("status")
	var errs field.ErrorList
	for _, f := range []struct {
		name  string
		value *int64
	}{
		{"pageSizeBytes", &s.PageSizeBytes},
		{"underVoltageEvents", s.UnderVoltageEvents},
		{"supplyMicroV", s.SupplyMicroV},
		{"batteryPercent", s.BatteryPercent},
		{"memoryBytes", s.MemoryBytes},
		{"memoryAvailableBytes", s.MemoryAvailableBytes},
		{"memoryPressurePermille", s.MemoryPressurePermille},
		{"storageBytes", s.StorageBytes},
		{"storageAvailableBytes", s.StorageAvailableBytes},
		{"storageErrors", s.StorageErrors},
		{"storageUsedLifePercent", s.StorageUsedLifePercent},
		{"linkSpeedMbit", s.LinkSpeedMbit},
	} {
		if f.value != nil && *f.value < 0 {
			errs = append(errs, field.Invalid(status.Child(f.name), *f.value, "must be greater than or equal to 0"))
		}
	}
	for _, f := range []struct{ name, text string }{{"bootID", s.BootID}, {"model", s.Model}, {"architecture", s.Architecture}} {
		if len(f.text) > maxBoardText {
			errs = append(errs, field.TooLong(status.Child(f.name), "", maxBoardText))
		}
	}
	return append(errs, validateBoardConditions(s.Conditions, status.Child("conditions"))...)
}

func validateBoardConditions(conditions []metav1.Condition, path *field.Path) (errs field.ErrorList) {
	if len(conditions) > maxBoardConditions {
		return field.ErrorList{field.TooMany(path, len(conditions), maxBoardConditions)}
	}
	seen := sets.New[string]()
	for i, c := range conditions {
		at := path.Index(i)
		for _, message := range validation.IsQualifiedName(c.Type) {
			errs = append(errs, field.Invalid(at.Child("type"), c.Type, message))
		}
		if seen.Has(c.Type) {
			errs = append(errs, field.Duplicate(at.Child("type"), c.Type))
		}
		seen.Insert(c.Type)
		switch c.Status {
		case metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown:
		default:
			errs = append(errs, field.NotSupported(at.Child("status"), c.Status, []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}))
		}
		for _, f := range []struct{ name, text string }{{"reason", c.Reason}, {"message", c.Message}} {
			if len(f.text) > maxBoardMessage {
				errs = append(errs, field.TooLong(at.Child(f.name), "", maxBoardMessage))
			}
		}
	}
	return errs
}

// ValidateNodeHardwareStatus checks a report.
func ValidateNodeHardwareStatus(h, _ *api.NodeHardware) field.ErrorList {
	return ValidateNodeHardware(h)
}
