package report

import (
	"runtime"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/hw"
	"bramble.dev/bramble/server/api"
)

// HardwareStatus is what others are told of a board, without conditions. data is a
// path on the file system that holds images and volumes. It is pure.
func HardwareStatus(s hw.Snapshot, v hw.Verdict, data string) api.NodeHardwareStatus {
	st := api.NodeHardwareStatus{
		BootID: s.Identity.BootID, Model: s.Identity.Model, Architecture: architecture(s.Identity), PageSizeBytes: int64(s.Identity.PageSize),
		SoCTemperatureMilliC: value(v.SoC),
		MemoryBytes:          value(s.Memory.Total), MemoryAvailableBytes: value(s.Memory.Available),
		LinkSpeedMbit: linkSpeed(s.Links),
	}
	if v.SoC.OK() {
		st.SoCTemperatureRiseMilliC, st.SoCTemperatureSoftMilliC = &v.Rise, &v.Soft
	}
	t := s.Throttle
	if t.Bits.OK() {
		st.Throttled = pointer(t.Bits.Value.Throttled())
		st.UnderVoltageSinceBoot = pointer(t.Bits.Value.UnderVoltageSince())
	}
	if low, known := t.Low(); known {
		st.UnderVoltage = &low
		st.UnderVoltageEvents = pointer(int64(v.Low))
	}
	if p := s.Firmware.PMIC; p.OK() && p.Value.ExtMicroV > 0 {
		st.SupplyMicroV = &p.Value.ExtMicroV
	}
	if s.Pressure.Memory.OK() {
		st.MemoryPressurePermille = pointer(int64(10 * s.Pressure.Memory.Value.Some.Avg60))
	}
	if b := s.Power.Least(); b != nil {
		st.OnBattery, st.BatteryPercent = pointer(s.Power.OnBattery), value(b.Percent)
	}
	if m := mountOf(s.Mounts, data); m != nil {
		st.StorageBytes, st.StorageAvailableBytes, st.StorageErrors = value(m.Size), value(m.Free), value(m.Errors)
		st.StorageReadOnly = &m.ReadOnly
	}
	for _, w := range s.WiFi {
		if signal := value(w.SignalDBm); signal != nil && (st.WirelessSignalDBm == nil || *signal > *st.WirelessSignalDBm) {
			st.WirelessSignalDBm = signal
		}
	}
	for _, d := range s.Disks {
		used := int64(d.Wear.Value.UsedPercent)
		if d.Wear.OK() && (st.StorageUsedLifePercent == nil || *st.StorageUsedLifePercent < used) {
			st.StorageUsedLifePercent = &used
		}
	}
	return st
}

// architecture is as images name it: "arm64", "arm/v7".
func architecture(id hw.Identity) string {
	switch p := id.Processor; {
	case p.Arch == "arm" && p.Variant != "":
		return p.Arch + "/" + p.Variant
	case p.Arch != "":
		return p.Arch
	}
	return runtime.GOARCH
}

func pointer[T any](v T) *T { return &v }

// value is what was read; nil if nothing was.
func value(r hw.Reading[int64]) *int64 {
	if !r.OK() {
		return nil
	}
	return &r.Value
}

// mountOf is the mount that a path is on; nil if it is none on a disk.
func mountOf(mounts []hw.Mount, path string) (best *hw.Mount) {
	for i := range mounts {
		m := &mounts[i]
		below := m.Path == "/" || path == m.Path || strings.HasPrefix(path, m.Path+"/")
		if below && (best == nil || len(m.Path) > len(best.Path)) {
			best = m
		}
	}
	return best
}

// linkSpeed is the speed of the fastest wired link that is up.
func linkSpeed(links []hw.Link) (fastest *int64) {
	for _, l := range links {
		if l.State == "up" && !l.Wireless && l.Speed.OK() && (fastest == nil || l.Speed.Value > *fastest) {
			fastest = &l.Speed.Value
		}
	}
	return fastest
}

// Dead bands: by less than this a reading may change without being reported.
const (
	bandMilliC   = 2000
	bandMicroV   = 50_000
	bandPercent  = 5
	bandPermille = 50
	bandDBm      = 6
	bandMemory   = 20 // the part of all that 1 is
	bandStorage  = 50
)

// leftDeadBand says whether a reading changed by more than its dead band.
func leftDeadBand(was, now *api.NodeHardwareStatus) bool {
	return moved(was.SoCTemperatureMilliC, now.SoCTemperatureMilliC, bandMilliC) ||
		moved(was.SoCTemperatureRiseMilliC, now.SoCTemperatureRiseMilliC, bandMilliC) ||
		moved(was.SoCTemperatureSoftMilliC, now.SoCTemperatureSoftMilliC, 1) ||
		changed(was.Throttled, now.Throttled) || changed(was.UnderVoltage, now.UnderVoltage) ||
		changed(was.UnderVoltageSinceBoot, now.UnderVoltageSinceBoot) || moved(was.UnderVoltageEvents, now.UnderVoltageEvents, 1) ||
		moved(was.SupplyMicroV, now.SupplyMicroV, bandMicroV) ||
		changed(was.OnBattery, now.OnBattery) || moved(was.BatteryPercent, now.BatteryPercent, bandPercent) ||
		moved(was.MemoryAvailableBytes, now.MemoryAvailableBytes, part(now.MemoryBytes, bandMemory)) ||
		moved(was.MemoryPressurePermille, now.MemoryPressurePermille, bandPermille) ||
		moved(was.StorageAvailableBytes, now.StorageAvailableBytes, part(now.StorageBytes, bandStorage)) ||
		changed(was.StorageReadOnly, now.StorageReadOnly) || moved(was.StorageErrors, now.StorageErrors, 1) ||
		moved(was.StorageUsedLifePercent, now.StorageUsedLifePercent, 1) ||
		moved(was.LinkSpeedMbit, now.LinkSpeedMbit, 1) || moved(was.WirelessSignalDBm, now.WirelessSignalDBm, bandDBm)
}

func moved(was, now *int64, band int64) bool {
	if was == nil || now == nil {
		return was != now
	}
	return *now-*was >= band || *was-*now >= band
}

func changed(was, now *bool) bool {
	if was == nil || now == nil {
		return was != now
	}
	return *was != *now
}

func part(of *int64, parts int64) int64 {
	if of == nil {
		return 1
	}
	return max(*of/parts, 1)
}

// conditionWords are reason and message of a condition that is True, and its message
// when it is False.
var conditionWords = map[hw.ConditionType][3]string{
	hw.Hot:                {"NearLimit", "the processor is within 2 °C of slowing down, or slowed down: give the board air; it ends 8 °C below for two minutes", "the processor is cool enough"},
	hw.Throttled:          {"ClockHeldDown", "the firmware holds the clock down", "the clock is as asked for"},
	hw.UnderVoltage:       {"SupplyTooLow", "the supply was below 4.63 V within five minutes: use a stronger one, or a shorter cable", "the supply holds"},
	hw.StorageWorn:        {"LifeUsed", "a storage device has used nine tenths of the life that its maker promises: replace it", "no storage device says that it is worn"},
	hw.ReadOnlyFilesystem: {"ErrorsFound", "the kernel made a file system read-only, as it does when it finds errors: check it (fsck), and its card", "no file system became read-only"},
	hw.LowBattery:         {"LittleLeft", "the battery that feeds the board is below 20 %; it ends at 30 %", "the battery has enough"},
	hw.OnBattery:          {"Discharging", "the board runs on its battery", "the board does not run on its battery"},
	hw.ClockUnsynced:      {"NobodySetsIt", "nobody sets the board's clock: sudo timedatectl set-ntp true", "the clock is set"},
}

// Conditions are the conditions of a verdict that are known. Their times of before stay
// while they stand. It is pure.
func Conditions(v hw.Verdict, before []metav1.Condition, now time.Time) (all []metav1.Condition) {
	for _, c := range v.Conditions {
		if !c.Known {
			continue
		}
		words := conditionWords[c.Type]
		out := metav1.Condition{
			Type: string(c.Type), Status: metav1.ConditionFalse, Reason: "Fine", Message: words[2],
			LastTransitionTime: metav1.NewTime(now.Round(0).Truncate(time.Second)),
		}
		if c.On {
			out.Status, out.Reason, out.Message = metav1.ConditionTrue, words[0], words[1]
		}
		for _, old := range before {
			if old.Type == out.Type && old.Status == out.Status {
				out.LastTransitionTime = old.LastTransitionTime
			}
		}
		all = append(all, out)
	}
	return all
}
