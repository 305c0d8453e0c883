package hw

import (
	"slices"
	"time"
)

// ConditionType is what may be wrong with a board. Its names are those of the
// conditions of NodeHardware and Node.
type ConditionType string

// What may be wrong with a board.
const (
	Hot                ConditionType = "Hot"
	Throttled          ConditionType = "Throttled"
	UnderVoltage       ConditionType = "UnderVoltage"
	StorageWorn        ConditionType = "StorageWorn"
	ReadOnlyFilesystem ConditionType = "ReadOnlyFilesystem"
	LowBattery         ConditionType = "LowBattery"
	OnBattery          ConditionType = "OnBattery"
	ClockUnsynced      ConditionType = "ClockUnsynced"
)

// Condition is whether something is wrong, with hysteresis: readings that flicker
// around a limit change it once.
type Condition struct {
	Type  ConditionType
	On    bool
	Known bool // the board can tell
}

// Verdict is what a Judge makes of a board's readings.
type Verdict struct {
	SoC        Reading[int64] // smoothed, m°C
	Rise       int64          // of it, m°C a minute
	Soft       int64          // where the board begins to slow down, m°C
	Low        int            // how often the supply was too low in the last hour
	Conditions []Condition    // of every type, in the order above
}

// Is says whether a condition is known and on.
func (v Verdict) Is(t ConditionType) bool {
	return slices.ContainsFunc(v.Conditions, func(c Condition) bool { return c.Type == t && c.On })
}

// Limits of a Judge.
const (
	softPi         = 80_000 // m°C: the firmware of a Raspberry Pi slows it down
	softPi3Plus    = 60_000 // and that of a 3B+ and a 3A+ from here on
	HotBelow       = 2_000  // as far below, a board is hot
	coolBelow      = 8_000  // and as far it is not any more
	smoothing      = 30 * time.Second
	batteryLow     = 20 // percent
	batteryEnough  = 30
	riseOver       = 2 * time.Minute
	forgottenAfter = 5 * time.Minute // readings from before say nothing of now
)

// Judge makes a verdict of snapshots of one board, taken in their order. It is not
// safe for concurrent use. The zero value is ready.
type Judge struct {
	recent   []int64 // the last three temperatures, for their median
	average  float64 // m°C
	at       time.Duration
	known    bool // average holds
	base     float64
	baseAt   time.Duration
	rise     float64 // m°C a minute
	boot     string
	alarms   int             // of the supply, as the Board counts them
	lows     []time.Duration // when they came, in the last hour
	switches [8]latch
}

// Take judges the next snapshot.
func (j *Judge) Take(s Snapshot) Verdict {
	if id := s.Identity.BootID; id != j.boot {
		*j = Judge{boot: id}
	}
	v := Verdict{Soft: Soft(s)}
	v.SoC = j.smooth(s.Thermal.SoC)
	v.Rise = int64(j.rise)
	v.Low = j.count(s)
	for i, rule := range rules {
		enter, leave, known := rule.look(s, v)
		l := &j.switches[i]
		if known {
			l.take(s.At, enter, leave, rule.in, rule.out)
		}
		v.Conditions = append(v.Conditions, Condition{Type: rule.is, On: l.on && known, Known: known})
	}
	return v
}

// Soft is the temperature from which a board slows down, in m°C.
func Soft(s Snapshot) int64 {
	switch r := s.Identity.Revision; {
	case r != nil && (r.Type == "3B+" || r.Type == "3A+"):
		return softPi3Plus
	case r == nil && s.Thermal.Passive > 0:
		return s.Thermal.Passive
	}
	return softPi
}

// count counts the times that the supply was too low, in the last hour.
func (j *Judge) count(s Snapshot) int {
	for ; j.alarms < s.Throttle.Alarms; j.alarms++ {
		j.lows = append(j.lows, s.At)
	}
	j.lows = slices.DeleteFunc(j.lows, func(at time.Duration) bool { return s.At-at > time.Hour })
	return len(j.lows)
}

// smooth is the mean of some half minute of the median of three: one that lies alone
// is not seen. What was not read is not made up.
func (j *Judge) smooth(r Reading[int64]) Reading[int64] {
	value, err := r.Get()
	if err != nil {
		return r
	}
	if !j.known || r.At-j.at > forgottenAfter {
		j.recent, j.average, j.at, j.known = nil, float64(value), r.At, true
		j.base, j.baseAt, j.rise = j.average, r.At, 0
	}
	if r.At == j.at && len(j.recent) > 0 { // the same reading again
		r.Value = int64(j.average)
		return r
	}
	j.recent = append(j.recent, value)
	j.recent = j.recent[max(len(j.recent)-3, 0):]
	sorted := slices.Sorted(slices.Values(j.recent))
	passed := float64(r.At - j.at)
	j.average += (float64(sorted[len(sorted)/2]) - j.average) * passed / (passed + float64(smoothing))
	j.at = r.At
	if since := r.At - j.baseAt; since >= riseOver {
		j.rise = (j.average - j.base) / since.Minutes()
		j.base, j.baseAt = j.average, r.At
	}
	r.Value = int64(j.average)
	return r
}

// rule is when a condition begins and ends: what must hold for how long.
type rule struct {
	is      ConditionType
	in, out time.Duration
	look    func(s Snapshot, v Verdict) (enter, leave, known bool)
}

var rules = [8]rule{
	{Hot, 10 * time.Second, 2 * time.Minute, func(s Snapshot, v Verdict) (enter, leave, known bool) {
		capped := s.Throttle.Bits.OK() && s.Throttle.Bits.Value.Throttled()
		hot := v.SoC.OK() && v.SoC.Value >= v.Soft-HotBelow
		cool := !v.SoC.OK() || v.SoC.Value <= v.Soft-coolBelow
		return hot || capped, cool && !capped, v.SoC.OK() || s.Throttle.Bits.OK()
	}},
	{Throttled, 10 * time.Second, 2 * time.Minute, func(s Snapshot, _ Verdict) (enter, leave, known bool) {
		on := s.Throttle.Bits.Value.Throttled()
		return on, !on, s.Throttle.Bits.OK()
	}},
	{UnderVoltage, 0, 5 * time.Minute, func(s Snapshot, _ Verdict) (enter, leave, known bool) {
		on, known := s.Throttle.Low()
		return on, !on, known
	}},
	{StorageWorn, 0, 0, func(s Snapshot, _ Verdict) (enter, leave, known bool) {
		for _, d := range s.Disks {
			if d.Wear.OK() {
				known = true
				enter = enter || d.Wear.Value.Out()
			}
		}
		return enter, !enter, known
	}},
	{ReadOnlyFilesystem, 0, 0, func(s Snapshot, _ Verdict) (enter, leave, known bool) {
		for _, m := range s.Mounts {
			enter = enter || m.Flipped
		}
		return enter, !enter, len(s.Mounts) > 0
	}},
	{LowBattery, 10 * time.Second, 30 * time.Second, func(s Snapshot, _ Verdict) (enter, leave, known bool) {
		b := s.Power.Least()
		if b == nil || !b.Percent.OK() {
			return false, true, false
		}
		return s.Power.OnBattery && b.Percent.Value < batteryLow, b.Percent.Value >= batteryEnough || !s.Power.OnBattery, true
	}},
	{OnBattery, 10 * time.Second, 30 * time.Second, func(s Snapshot, _ Verdict) (enter, leave, known bool) {
		return s.Power.OnBattery, !s.Power.OnBattery, s.Power.Least() != nil
	}},
	{ClockUnsynced, 0, 0, func(s Snapshot, _ Verdict) (enter, leave, known bool) {
		c := s.Clock.Synchronized
		return !c.Value, c.Value, c.OK()
	}},
}

// latch is a switch that goes on after enter has held for a while, and off after
// leave has.
type latch struct {
	on      bool
	waiting bool // what would switch it holds
	since   time.Duration
}

func (l *latch) take(now time.Duration, enter, leave bool, in, out time.Duration) {
	want, long := enter, in
	if l.on {
		want, long = leave, out
	}
	if !want {
		l.waiting = false
		return
	}
	if !l.waiting {
		l.waiting, l.since = true, now
	}
	if now-l.since >= long {
		l.on, l.waiting = !l.on, false
	}
}
