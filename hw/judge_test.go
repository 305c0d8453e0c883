package hw_test

import (
	"fmt"
	"testing"
	"time"

	"bramble.dev/bramble/hw"
)

// judged has a Judge take a snapshot every 5 s for as long as d.
func judged(j *hw.Judge, at *time.Duration, d time.Duration, change func(i int, s *hw.Snapshot)) (last hw.Verdict, flips int) {
	was := false
	for i := range int(d / hw.Fast) {
		*at += hw.Fast
		s := hw.Snapshot{At: *at}
		change(i, &s)
		last = j.Take(s)
		if on := last.Is(hw.Hot); i > 0 && on != was {
			flips++
		}
		was = last.Is(hw.Hot)
	}
	return last, flips
}

func temperature(milliC int64, at time.Duration) hw.Reading[int64] {
	return hw.Reading[int64]{Value: milliC, At: at, Source: "zone"}
}

// TestHot follows a board through its limit and back.
func TestHot(t *testing.T) {
	var j hw.Judge
	var at time.Duration
	steady := func(milliC int64) func(int, *hw.Snapshot) {
		return func(_ int, s *hw.Snapshot) { s.Thermal.SoC = temperature(milliC, s.At) }
	}
	if v, _ := judged(&j, &at, 5*time.Minute, steady(60_000)); v.Is(hw.Hot) || v.SoC.Value != 60_000 || v.Soft != 80_000 {
		t.Errorf("at 60: %+v", v)
	}
	if v, _ := judged(&j, &at, 5*time.Minute, steady(79_000)); !v.Is(hw.Hot) {
		t.Errorf("at 79: %+v", v)
	}
	// Between the limits it stays as it is, and then needs two minutes.
	if v, _ := judged(&j, &at, 30*time.Minute, steady(74_000)); !v.Is(hw.Hot) {
		t.Errorf("back at 74: %+v", v)
	}
	if v, _ := judged(&j, &at, 90*time.Second, steady(60_000)); !v.Is(hw.Hot) {
		t.Errorf("after a minute and a half of 60: %+v", v)
	}
	if v, _ := judged(&j, &at, 5*time.Minute, steady(60_000)); v.Is(hw.Hot) {
		t.Errorf("after minutes of 60: %+v", v)
	}
}

// TestFlickerMovesNothing has temperatures jump around the limit.
func TestFlickerMovesNothing(t *testing.T) {
	var j hw.Judge
	var at time.Duration
	_, flips := judged(&j, &at, 2*time.Hour, func(i int, s *hw.Snapshot) {
		s.Thermal.SoC = temperature(78_000+[]int64{-4000, 3000, -2000, 1500}[i%4], s.At)
	})
	if flips > 1 {
		t.Errorf("%d changes", flips)
	}
}

// TestOneReadingIsNotBelieved has one reading in six be of another board.
func TestOneReadingIsNotBelieved(t *testing.T) {
	var j hw.Judge
	var at time.Duration
	v, flips := judged(&j, &at, time.Hour, func(i int, s *hw.Snapshot) {
		milliC := int64(55_000)
		if i%6 == 5 {
			milliC = 84_000
		}
		s.Thermal.SoC = temperature(milliC, s.At)
	})
	if flips > 0 || v.SoC.Value > 56_000 {
		t.Errorf("%d changes, %+v", flips, v)
	}
}

// TestRise measures how fast it grows warm.
func TestRise(t *testing.T) {
	var j hw.Judge
	var at time.Duration
	v, _ := judged(&j, &at, 10*time.Minute, func(i int, s *hw.Snapshot) {
		s.Thermal.SoC = temperature(40_000+int64(i)*100, s.At) // 1.2 K a minute
	})
	if v.Rise < 1100 || v.Rise > 1300 {
		t.Errorf("rise %d m°C a minute", v.Rise)
	}
}

// TestReboot forgets what was before: the clock of a Board begins anew with it.
func TestReboot(t *testing.T) {
	var j hw.Judge
	var at time.Duration
	judged(&j, &at, 5*time.Minute, func(_ int, s *hw.Snapshot) {
		s.Identity.BootID = "a"
		s.Thermal.SoC = temperature(82_000, s.At)
	})
	v, _ := judged(&j, &at, hw.Fast, func(_ int, s *hw.Snapshot) {
		s.Identity.BootID = "b"
		s.Thermal.SoC = temperature(40_000, s.At)
	})
	if v.Is(hw.Hot) || v.SoC.Value != 40_000 {
		t.Errorf("after the reboot: %+v", v)
	}
}

// TestConditions has each thing be wrong, long enough.
func TestConditions(t *testing.T) {
	ok := func(s *hw.Snapshot) { s.Throttle.Bits = hw.Reading[hw.ThrottleBits]{Source: "x"} }
	battery := func(percent int64) hw.Power {
		return hw.Power{OnBattery: true, Supplies: []hw.Supply{{Type: "Battery", Own: true, Percent: hw.Reading[int64]{Value: percent, Source: "x"}}}}
	}
	for _, c := range []struct {
		want   hw.ConditionType
		change func(*hw.Snapshot)
	}{
		{hw.Throttled, func(s *hw.Snapshot) { s.Throttle.Bits.Value = 2 }},
		{hw.UnderVoltage, func(s *hw.Snapshot) { s.Throttle.Bits.Value = 1 }},
		{hw.UnderVoltage, func(s *hw.Snapshot) { s.Throttle.UnderVoltage = hw.Reading[bool]{Value: true, Source: "x"} }},
		{hw.StorageWorn, func(s *hw.Snapshot) {
			s.Disks = []hw.Disk{{Wear: hw.Reading[hw.Wear]{Value: hw.Wear{UsedPercent: 90}, Source: "x"}}}
		}},
		{hw.ReadOnlyFilesystem, func(s *hw.Snapshot) { s.Mounts = []hw.Mount{{ReadOnly: true, Flipped: true}} }},
		{hw.LowBattery, func(s *hw.Snapshot) { s.Power = battery(19) }},
		{hw.OnBattery, func(s *hw.Snapshot) { s.Power = battery(90) }},
		{hw.ClockUnsynced, func(s *hw.Snapshot) { s.Clock.Synchronized = hw.Reading[bool]{Source: "x"} }},
	} {
		t.Run(fmt.Sprint(c.want), func(t *testing.T) {
			var j hw.Judge
			var at time.Duration
			if v, _ := judged(&j, &at, 2*time.Minute, func(_ int, s *hw.Snapshot) { ok(s) }); v.Is(c.want) {
				t.Errorf("when all is well: %+v", v)
			}
			v, _ := judged(&j, &at, 2*time.Minute, func(_ int, s *hw.Snapshot) { ok(s); c.change(s) })
			if !v.Is(c.want) {
				t.Errorf("got %+v", v)
			}
		})
	}
}
