package doctor

import (
	"errors"

	"bramble.dev/bramble/hw"
)

// isPi says whether the board is a Raspberry Pi, whose firmware can be asked.
func isPi(s hw.Snapshot) bool { return s.Identity.Revision != nil }

func checkSupply(f Facts) []Finding {
	const check = "UnderVoltage"
	t := f.Board.Throttle
	low, _ := t.Low()
	const cure = "use a stronger supply (of 5.1 V), or a shorter cable"
	switch {
	case low:
		return []Finding{warning(check, "the supply is too low now (below 4.63 V): the board may stop or damage its card; %s", cure)}
	case t.Bits.OK() && t.Bits.Value.UnderVoltageSince():
		return []Finding{warning(check, "the supply was too low since the boot (below 4.63 V): the board may stop or damage its card; %s", cure)}
	case t.Bits.OK():
		return []Finding{fine(check, "the supply held since the boot")}
	case t.UnderVoltage.OK():
		return []Finding{fine(check, "the supply holds now")}
	}
	return nil // the board does not watch it, or checkFirmware says why it is not told
}

func checkHeat(f Facts) (all []Finding) {
	s := f.Board
	if bits := s.Throttle.Bits; bits.OK() {
		const check = "Throttled"
		switch b := bits.Value; {
		case b.Throttled():
			all = append(all, warning(check, "the firmware holds the clock down now, for want of cooling or of supply"))
		case b.ThrottledSince():
			all = append(all, note(check, "the firmware held the clock down since the boot, for want of cooling or of supply"))
		default:
			all = append(all, fine(check, "the clock was not held down since the boot"))
		}
	}
	const check = "Hot"
	soft := hw.Soft(s)
	switch temp, err := s.Thermal.SoC.Get(); {
	case errors.Is(err, hw.ErrAbsent) && f.Recorded:
	case errors.Is(err, hw.ErrAbsent):
		all = append(all, unknown(check, "how hot the processor is: no sensor here says so"))
	case err != nil:
		all = append(all, unknown(check, "how hot the processor is: %v", err))
	case temp >= soft-hw.HotBelow:
		all = append(all, warning(check, "the processor has %s, and slows down at %s: give the board air or a fan", hw.Celsius(temp), hw.Celsius(soft)))
	default:
		all = append(all, fine(check, "the processor has %s, and slows down at %s", hw.Celsius(temp), hw.Celsius(soft)))
	}
	return all
}
