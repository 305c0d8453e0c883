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

	// SoCTemperatureMilliC is the hottest zone of the processor.
	SoCTemperatureMilliC *int64 `json:"socTemperatureMilliC,omitempty"`
	// Throttled says that the firmware or the kernel holds the clock down now
	// (any of get_throttled's bits 1, 2 and 3).
	Throttled *bool `json:"throttled,omitempty"`
	// UnderVoltage says that the supply was too low within the last seconds.
	UnderVoltage *bool `json:"underVoltage,omitempty"`
	// UnderVoltageEvents counts the times that UnderVoltage came since boot.
	UnderVoltageEvents *int64 `json:"underVoltageEvents,omitempty"`

	// MemoryAvailableBytes is MemAvailable of /proc/meminfo.
	MemoryAvailableBytes *int64 `json:"memoryAvailableBytes,omitempty"`
	// StorageAvailableBytes is the free space, for other users than root, of the
	// file system that holds images and volumes.
	StorageAvailableBytes *int64 `json:"storageAvailableBytes,omitempty"`
	// StorageReadOnly says that this file system has become read-only.
	StorageReadOnly *bool `json:"storageReadOnly,omitempty"`
}

// NodeHardwareList is a list of NodeHardware.
type NodeHardwareList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeHardware `json:"items"`
}
