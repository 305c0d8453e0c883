package admission

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bramble.dev/bramble/server/api"
)

// ValidateNodeHardware checks that counts are no less than 0. A temperature is
// not judged here: a sensor that lies is the scheduler's matter.
func ValidateNodeHardware(h *api.NodeHardware) field.ErrorList {
	s := &h.Status
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
			errs = append(errs, field.Invalid(field.NewPath("status", f.name), *f.value, "must be greater than or equal to 0"))
		}
	}
	return errs
}

// ValidateNodeHardwareStatus checks a report.
func ValidateNodeHardwareStatus(h, _ *api.NodeHardware) field.ErrorList {
	return ValidateNodeHardware(h)
}
