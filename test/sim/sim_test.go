package main

import (
	"strings"
	"testing"
)

// TestKnowingOfHeatPays holds, over all scenarios, that Bramble's scheduler loses at most
// one percent more work than one that knows nothing of boards, and that it halves the
// time in which boards of the mixed fleet are throttled, at 24 °C and load 0.45.
func TestKnowingOfHeatPays(t *testing.T) {
	all := trials(scenarios(), []policy{blind, ours})
	perform(all)
	halved := false
	for _, r := range rows(all, 2) {
		s := r[0].scenario
		before, after := r[0].mean(lostWork), r[1].mean(lostWork)
		if after > before+1 {
			t.Errorf("%s, %.0f °C, load %.2f: %.2f %% of the work are lost, %.2f %% without knowing of heat", s.fleet.name, s.ambient, s.load, after, before)
		}
		if s.fleet.name != mixed().name || s.ambient != 24 || s.load != 0.45 {
			continue
		}
		halved = true
		if before, after := r[0].mean(throttled), r[1].mean(throttled); before == 0 || after > before/2 {
			t.Errorf("throttled for %.2f %% of the time, %.2f %% without knowing of heat", after, before)
		}
	}
	if !halved {
		t.Error("the mixed fleet was not run at 24 °C and load 0.45")
	}
}

// TestTheSameAgain runs one scenario twice: the figures are of the seed alone.
func TestTheSameAgain(t *testing.T) {
	s := scenarios()[3]
	if a, b := simulate(s, ours, 7), simulate(s, ours, 7); a != b {
		t.Errorf("once %+v, once %+v", a, b)
	}
	if a, b := simulate(s, ours, 7), simulate(s, ours, 8); a == b {
		t.Error("the seed changes nothing")
	}
}

// TestBoardsAreAsMeasured lets boards idle and then work until nothing changes: what
// they get warmer by is what was measured.
func TestBoardsAreAsMeasured(t *testing.T) {
	for _, tt := range []struct {
		kind *kind
		rise float64 // K from idle to full load, where nothing is throttled
	}{{&pi5Active, 5.5 * 2.7}, {&pi4Heatsink, 29.5}, {&zero2, 19.5}, {&rock5, 30}} {
		n := newNode("n", tt.kind, 20, sound, 1)
		idle := n.celsius()
		n.pods = []*simPod{{use: tt.kind.cores}}
		for range 4000 {
			n.run()
		}
		if got := n.celsius() - idle; got < tt.rise-1 || got > tt.rise+1 {
			t.Errorf("%s: %.1f K warmer, measured were %.1f", tt.kind.name, got, tt.rise)
		}
	}
}

// TestSplice puts figures into a page twice.
func TestSplice(t *testing.T) {
	page := "before\n" + figuresBegin + "old\n" + figuresEnd + "after\n"
	once, err := splice(page, "new\n")
	if err != nil {
		t.Fatal(err)
	}
	if twice, err := splice(once, "new\n"); err != nil || twice != once || !strings.Contains(once, "new\n") || strings.Contains(once, "old") {
		t.Errorf("once %q, twice %q, %v", once, twice, err)
	}
	if _, err := splice("nothing", "new"); err == nil {
		t.Error("a page without a place was taken")
	}
}
