package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeHardware is what a node's agent reads from its board. It is
// cluster-scoped, has its node's name, and lives in the server's memory only:
// after a restart of the server it is absent until the node reports again.
type NodeHardware struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Status NodeHardwareStatus `json:"status,omitempty"`
}

// NodeHardwareStatus has one writer, the node's agent. A field that is absent
// is unknown: the board has no such sensor, or reading it failed.
type NodeHardwareStatus struct {
	// ObservedAt is the node's own clock, which may be wrong. People read it;
	// nothing is decided by it.
	ObservedAt metav1.Time `json:"observedAt,omitempty"`
	// BootID is /proc/sys/kernel/random/boot_id. Another value means a reboot,
	// with which all counters begin anew.
	BootID string `json:"bootID,omitempty"`
	// Model is the board as its device tree names it, e.g.
	// "Raspberry Pi 5 Model B Rev 1.0", or the DMI product name.
	Model string `json:"model,omitempty"`
	// Architecture is GOARCH of the agent, with the variant of 32-bit ARM:
	// arm64, arm/v7, arm/v6, amd64.
	Architecture string `json:"architecture,omitempty"`
	// PageSizeBytes is the kernel's page size, 16384 on a Pi 5's default kernel.
	PageSizeBytes int64 `json:"pageSizeBytes,omitempty"`

	// SoCTemperatureMilliC is the hottest zone of the processor, smoothed over half a
	// minute.
	SoCTemperatureMilliC *int64 `json:"socTemperatureMilliC,omitempty"`
	// SoCTemperatureRiseMilliC is by how much it rose in the last minute.
	SoCTemperatureRiseMilliC *int64 `json:"socTemperatureRiseMilliC,omitempty"`
	// SoCTemperatureSoftMilliC is where the board begins to slow itself down.
	SoCTemperatureSoftMilliC *int64 `json:"socTemperatureSoftMilliC,omitempty"`
	// Throttled says that the firmware or the kernel holds the clock down now
	// (any of get_throttled's bits 1, 2 and 3).
	Throttled *bool `json:"throttled,omitempty"`
	// UnderVoltage says that the supply was too low within the last seconds.
	UnderVoltage *bool `json:"underVoltage,omitempty"`
	// UnderVoltageSinceBoot says that it was so once since the board was started.
	UnderVoltageSinceBoot *bool `json:"underVoltageSinceBoot,omitempty"`
	// UnderVoltageEvents counts the times that UnderVoltage came in the last hour.
	UnderVoltageEvents *int64 `json:"underVoltageEvents,omitempty"`
	// SupplyMicroV is the voltage of the 5 V supply, where the board measures it (Pi 5).
	SupplyMicroV *int64 `json:"supplyMicroV,omitempty"`
	// BatteryPercent is the charge of the battery that feeds the board, and OnBattery
	// says that it does so now.
	BatteryPercent *int64 `json:"batteryPercent,omitempty"`
	OnBattery      *bool  `json:"onBattery,omitempty"`

	// MemoryBytes is MemTotal of /proc/meminfo, and MemoryAvailableBytes MemAvailable.
	MemoryBytes          *int64 `json:"memoryBytes,omitempty"`
	MemoryAvailableBytes *int64 `json:"memoryAvailableBytes,omitempty"`
	// MemoryPressurePermille is for how many thousandths of the last minute some task
	// waited for memory (PSI).
	MemoryPressurePermille *int64 `json:"memoryPressurePermille,omitempty"`
	// StorageBytes is the size of the file system that holds images and volumes, and
	// StorageAvailableBytes its free space, for other users than root.
	StorageBytes          *int64 `json:"storageBytes,omitempty"`
	StorageAvailableBytes *int64 `json:"storageAvailableBytes,omitempty"`
	// StorageReadOnly says that this file system has become read-only.
	StorageReadOnly *bool `json:"storageReadOnly,omitempty"`
	// StorageErrors counts the errors that ext4 found on it.
	StorageErrors *int64 `json:"storageErrors,omitempty"`
	// StorageUsedLifePercent is how much of the life that its maker promises the worst
	// storage device has used, at most; 101 is more than promised.
	StorageUsedLifePercent *int64 `json:"storageUsedLifePercent,omitempty"`

	// LinkSpeedMbit is the speed of the fastest wired link that is up; WirelessSignalDBm
	// the signal of a wireless one.
	LinkSpeedMbit     *int64 `json:"linkSpeedMbit,omitempty"`
	WirelessSignalDBm *int64 `json:"wirelessSignalDBm,omitempty"`

	// Conditions are what is wrong with the board (True) and what is known not to be
	// (False), with hysteresis: Hot, Throttled, UnderVoltage, StorageWorn,
	// ReadOnlyFilesystem, LowBattery, OnBattery, ClockUnsynced. Their times are by the
	// node's own clock.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Wrong are the conditions that are True, in their order.
func (s *NodeHardwareStatus) Wrong() (names []string) {
	for i := range s.Conditions {
		if s.Conditions[i].Status == metav1.ConditionTrue {
			names = append(names, s.Conditions[i].Type)
		}
	}
	return names
}

// NodeHardwareList is a list of NodeHardware.
type NodeHardwareList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeHardware `json:"items"`
}
