package admission

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bramble.dev/bramble/server/api"
)

// ValidateNodeHardware checks the name, which is the node's.
func ValidateNodeHardware(h *api.NodeHardware) field.ErrorList {
	return append(validateClusterMeta(&h.ObjectMeta), validateReadings(&h.Status)...)
}

// ValidateNodeHardwareUpdate checks a change of anything but the status.
func ValidateNodeHardwareUpdate(h, old *api.NodeHardware) field.ErrorList {
	return ValidateMetaUpdate(&h.ObjectMeta, &old.ObjectMeta)
}

// ValidateNodeHardwareStatus checks that counts are no less than 0. A
// temperature is not judged here: a sensor that lies is the scheduler's matter.
func ValidateNodeHardwareStatus(h, old *api.NodeHardware) field.ErrorList {
	return append(ValidateMetaUpdate(&h.ObjectMeta, &old.ObjectMeta), validateReadings(&h.Status)...)
}

func validateReadings(s *api.NodeHardwareStatus) field.ErrorList {
	var errs field.ErrorList
	for _, f := range []struct {
		name  string
		value *int64
	}{
		{"pageSizeBytes", &s.PageSizeBytes},
		{"underVoltageEvents", s.UnderVoltageEvents},
		{"memoryAvailableBytes", s.MemoryAvailableBytes},
		{"storageAvailableBytes", s.StorageAvailableBytes},
	} {
		if f.value != nil && *f.value < 0 {
			errs = append(errs, field.Invalid(field.NewPath("status", f.name), *f.value, "must be greater than or equal to 0"))
		}
	}
	return errs
}
