package hw

import "strings"

// Throttle is what the firmware of a Raspberry Pi does to the clock, and why.
type Throttle struct {
	Bits  Reading[ThrottleBits] `json:"bits"`
	Since ThrottleBits          `json:"since"` // what of bits 0 to 3 was seen since the Board was opened
	// UnderVoltage is the kernel's own alarm: the supply was too low in the last two
	// seconds. It is there without access to the firmware.
	UnderVoltage Reading[bool] `json:"underVoltage"`
	Alarms       int           `json:"alarms"` // how often it was too low since the Board was opened
}

// ThrottleBits is the answer to get_throttled, by Raspberry Pi's documentation of
// vcgencmd. What another program clears of bits 16 to 19 is lost.
type ThrottleBits uint32

// UnderVoltage says that the supply is too low now.
func (b ThrottleBits) UnderVoltage() bool { return b&1 != 0 }

// Capped says that the clock is limited now.
func (b ThrottleBits) Capped() bool { return b&2 != 0 }

// SoftLimit says that the soft limit of temperature is passed now.
func (b ThrottleBits) SoftLimit() bool { return b&8 != 0 }

// Throttled says that the clock is lower than asked for now, by any of its reasons: a
// board with half its clock was seen with bit 1 alone.
func (b ThrottleBits) Throttled() bool { return b&0xe != 0 }

// UnderVoltageSince says that the supply was too low since the boot.
func (b ThrottleBits) UnderVoltageSince() bool { return b&(1<<16) != 0 }

// ThrottledSince says that the clock was lower than asked for since the boot.
func (b ThrottleBits) ThrottledSince() bool { return b&(0xe<<16) != 0 }

// Low says whether the supply is too low now, by the firmware or by the kernel; known
// that one of them tells.
func (t Throttle) Low() (low, known bool) {
	return t.Bits.OK() && t.Bits.Value.UnderVoltage() || t.UnderVoltage.OK() && t.UnderVoltage.Value, t.Bits.OK() || t.UnderVoltage.OK()
}

const throttleCommand = "get_throttled"

type throttle struct {
	*reader
	command func(string) (string, error)
	alarm   *file
	low     bool // the supply was, in the sample before
	out     Throttle
}

func newThrottle(r *reader, command func(string) (string, error)) sensor {
	return &throttle{reader: r, command: command}
}

func (t *throttle) scan() {
	t.alarm = nil
	for _, chip := range chips(t.reader) {
		if chip.name == "rpi_volt" {
			t.alarm = t.open(chip.path, "in0_lcrit_alarm")
		}
	}
}

func (t *throttle) sample() {
	answer, err := t.command(throttleCommand)
	var bits ThrottleBits
	if err == nil {
		bits, err = ParseThrottled(answer)
	}
	t.out.Bits = read(t.reader, throttleCommand, bits, err)
	alarm, alarmErr := t.integer(t.alarm)
	t.out.UnderVoltage = read(t.reader, "rpi_volt in0_lcrit_alarm", alarm != 0, alarmErr)
	if err == nil {
		t.out.Since |= bits & 0xf
	}
	low, _ := t.out.Low()
	if low {
		t.out.Since |= 1
		if !t.low {
			t.out.Alarms++
		}
	}
	t.low = low
}

func (t *throttle) put(s *Snapshot) { s.Throttle = t.out }

// ParseThrottled reads "throttled=0x50005", and "50005" as the kernel's own file has
// it: always in base 16.
func ParseThrottled(answer string) (ThrottleBits, error) {
	_, value, found := strings.Cut(answer, "throttled=")
	if !found {
		value = answer
	}
	bits, err := parseHex([]byte(value))
	if err != nil || bits > 1<<32-1 {
		return 0, ErrFormat
	}
	return ThrottleBits(bits), nil
}
