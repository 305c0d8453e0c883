package doctor

import (
	"errors"

	"bramble.dev/bramble/hw"
)

func checkClock(f Facts) (all []Finding) {
	const check = "ClockUnsynced"
	c := f.Board.Clock
	switch set, err := c.Synchronized.Get(); {
	case err != nil && (f.Recorded || errors.Is(err, hw.ErrAbsent)):
	case err != nil:
		all = append(all, unknown(check, "whether the clock is set: %v", err))
	case set:
		all = append(all, fine(check, "the clock is kept by time servers"))
	case f.Init.Systemd:
		all = append(all, warning(check, "the kernel does not know the clock as synchronized: nobody sets it, or no time server answered yet").by("sudo timedatectl set-ntp true"))
	default:
		all = append(all, warning(check, "the kernel does not know the clock as synchronized: nobody sets it, or no time server answered yet").by("sudo apt install chrony"))
	}
	const rtc = "RTCMissing"
	if c.RTC != "" {
		return append(all, fine(rtc, "a clock runs without power: %s", c.RTC))
	}
	if f.Recorded && !c.Uptime.OK() {
		return all // nothing of its clocks is recorded
	}
	return append(all, note(rtc, "no clock runs without power: after a boot the time is wrong until a time server answers"))
}
