package hw

import (
	"encoding/json"
	"slices"
	"time"
)

// Snapshot is what a board said last. Readings that are absent are normal: no board
// has all of them. Times are since the Board was opened, by the monotonic clock.
type Snapshot struct {
	At        time.Duration `json:"-"` // when it was asked for
	Complete  bool          `json:"-"` // every sensor was asked: what is not here, is not there
	Identity  Identity      `json:"identity"`
	Thermal   Thermal       `json:"thermal"`
	Throttle  Throttle      `json:"throttle"`
	Firmware  Firmware      `json:"firmware"`
	CPU       CPU           `json:"cpu"`
	Pressure  Pressure      `json:"pressure"`
	Memory    Memory        `json:"memory"`
	Cgroups   Cgroups       `json:"cgroups"`
	Disks     []Disk        `json:"disks,omitempty"`
	Mounts    []Mount       `json:"mounts,omitempty"`
	Links     []Link        `json:"links,omitempty"`
	Power     Power         `json:"power"`
	Clock     Clock         `json:"clock"`
	Watchdogs []Watchdog    `json:"watchdogs,omitempty"`
	Channels  []Channel     `json:"channels,omitempty"` // of chips that watch hardware
	Devices   []Device      `json:"devices,omitempty"`  // by class
	OneWire   []Probe       `json:"oneWire,omitempty"`
	WiFi      []Station     `json:"wifi,omitempty"`
	Failing   []Failing     `json:"failing,omitempty"`
}

// Failing is a sensor that does not answer.
type Failing struct {
	Sensor string
	Misses int // in a row; after three it is asked once a minute
	Err    error
}

// MarshalJSON writes the error as text.
func (f Failing) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"sensor": f.Sensor, "misses": f.Misses, "error": f.Err.Error()})
}

// clone copies what the sensors will write to again.
func (s *Snapshot) clone() Snapshot {
	c := *s
	c.Thermal.Zones = slices.Clone(s.Thermal.Zones)
	c.Thermal.Cooling = slices.Clone(s.Thermal.Cooling)
	c.Channels = slices.Clone(s.Channels)
	c.CPU.Policies = slices.Clone(s.CPU.Policies)
	c.Disks = slices.Clone(s.Disks)
	c.Mounts = slices.Clone(s.Mounts)
	c.Links = slices.Clone(s.Links)
	c.Power.Supplies = slices.Clone(s.Power.Supplies)
	c.Watchdogs = slices.Clone(s.Watchdogs)
	c.Memory.Zram = slices.Clone(s.Memory.Zram)
	c.Devices = slices.Clone(s.Devices)
	c.OneWire = slices.Clone(s.OneWire)
	c.WiFi = slices.Clone(s.WiFi)
	return c
}
