package report_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bramble.dev/bramble/hw"
	"bramble.dev/bramble/nodeagent/report"
	"bramble.dev/bramble/server/api"
)

func is[T any](v T) *T { return &v }

func read[T any](v T) hw.Reading[T] { return hw.Reading[T]{Value: v, Source: "x"} }

// TestHardwareStatus says of readings what others are told.
func TestHardwareStatus(t *testing.T) {
	for _, tt := range []struct {
		name string
		s    hw.Snapshot
		v    hw.Verdict
		want api.NodeHardwareStatus
	}{
		{"nothing", hw.Snapshot{Identity: hw.Identity{Processor: hw.Processor{Arch: "arm", Variant: "v6"}}}, hw.Verdict{}, api.NodeHardwareStatus{Architecture: "arm/v6"}},
		{"heat", hw.Snapshot{Identity: hw.Identity{Processor: hw.Processor{Arch: "arm64", Variant: "v8"}}}, hw.Verdict{SoC: read[int64](51_000), Soft: 80_000, Rise: -200},
			api.NodeHardwareStatus{Architecture: "arm64", SoCTemperatureMilliC: is[int64](51_000), SoCTemperatureSoftMilliC: is[int64](80_000), SoCTemperatureRiseMilliC: is[int64](-200)}},
		{"supply by the alarm alone", hw.Snapshot{Identity: hw.Identity{Processor: hw.Processor{Arch: "arm64"}}, Throttle: hw.Throttle{UnderVoltage: read(true)}}, hw.Verdict{Low: 2},
			api.NodeHardwareStatus{Architecture: "arm64", UnderVoltage: is(true), UnderVoltageEvents: is[int64](2)}},
		{"the file system of the data, the worst disk, the fastest link, the strongest signal", hw.Snapshot{
			Identity: hw.Identity{Processor: hw.Processor{Arch: "arm64"}},
			Mounts: []hw.Mount{
				{Path: "/", Size: read[int64](10), Free: read[int64](1)},
				{Path: "/var/lib", Size: read[int64](100), Free: read[int64](60), Errors: read[int64](3), ReadOnly: true},
				{Path: "/var/library", Size: read[int64](7), Free: read[int64](7)},
			},
			Disks: []hw.Disk{{Wear: read(hw.Wear{UsedPercent: 10})}, {Wear: read(hw.Wear{UsedPercent: 40})}, {Wear: hw.Reading[hw.Wear]{Err: hw.ErrAbsent}}},
			Links: []hw.Link{
				{Name: "eth0", State: "up", Speed: read[int64](100)}, {Name: "eth1", State: "down", Speed: read[int64](1000)},
				{Name: "wlan0", State: "up", Wireless: true, Speed: read[int64](400)},
			},
			WiFi: []hw.Station{{SignalDBm: read[int64](-80)}, {SignalDBm: read[int64](-60)}},
		}, hw.Verdict{}, api.NodeHardwareStatus{
			Architecture: "arm64", StorageBytes: is[int64](100), StorageAvailableBytes: is[int64](60), StorageErrors: is[int64](3), StorageReadOnly: is(true),
			StorageUsedLifePercent: is[int64](40), LinkSpeedMbit: is[int64](100), WirelessSignalDBm: is[int64](-60),
		}},
		{"a battery, and not a mouse's", hw.Snapshot{Identity: hw.Identity{Processor: hw.Processor{Arch: "arm64"}}, Power: hw.Power{OnBattery: true, Supplies: []hw.Supply{
			{Type: "Battery", Percent: read[int64](3)}, {Type: "UPS", Own: true, Percent: read[int64](70)},
		}}}, hw.Verdict{}, api.NodeHardwareStatus{Architecture: "arm64", OnBattery: is(true), BatteryPercent: is[int64](70)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, report.HardwareStatus(tt.s, tt.v, "/var/lib/bramble")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
