package main

import "math"

// kind is a kind of board with its cooling. Heat flows by two poles: of each watt the
// fast one, which is the chip, rises by fast.kelvin, and the slow one, which is board and
// case, by slow.kelvin.
type kind struct {
	name       string
	revision   string // as hw names it; "": no Raspberry Pi
	cores      float64
	memoryMB   int64
	linkMbit   int64   // 0: Wi-Fi
	idle, full float64 // W; full is with all cores busy at full clock
	fast, slow pole
	steps      []float64 // the clock's, parts of the full one, slowest last
	limit      float64   // °C: the firmware, or the kernel, slows down from here on
	soft       float64   // °C: by one step from here on; 0: none
}

type pole struct {
	kelvin  float64 // per W
	seconds float64
}

// rise is a pole of a board of which the K are known by which it gets warmer from idle
// to full load.
func rise(kelvin, seconds, idle, full float64) pole { return pole{kelvin / (full - idle), seconds} }

// The kinds. docs/simulation.md says which numbers are fitted to measurements of boards,
// and which are guesses.
var (
	pi5Passive = kind{
		name: "pi5-passive", revision: "5", cores: 4, memoryMB: 8192, linkMbit: 1000, idle: 2.9, full: 8.4,
		fast: pole{1.44, 2}, slow: pole{4.82, 260}, steps: []float64{1, 0.83, 0.67, 0.5}, limit: 80,
	}
	pi5Active = kind{
		name: "pi5-active", revision: "5", cores: 4, memoryMB: 8192, linkMbit: 1000, idle: 2.9, full: 8.4,
		fast: pole{1.44, 2}, slow: pole{1.26, 100}, steps: []float64{1, 0.83, 0.67, 0.5}, limit: 80,
	}
	pi4Bare = kind{
		name: "pi4-bare", revision: "4B", cores: 4, memoryMB: 4096, linkMbit: 1000, idle: 2.7, full: 6.4,
		fast: rise(11, 20, 2.7, 6.4), slow: rise(21, 500, 2.7, 6.4), steps: pi4Steps, limit: 80,
	}
	pi4Heatsink = kind{
		name: "pi4-heatsink", revision: "4B", cores: 4, memoryMB: 4096, linkMbit: 1000, idle: 2.7, full: 6.4,
		fast: rise(6.8, 2, 2.7, 6.4), slow: rise(22.7, 400, 2.7, 6.4), steps: pi4Steps, limit: 80,
	}
	pi3 = kind{
		name: "pi3", revision: "3B", cores: 4, memoryMB: 1024, linkMbit: 100, idle: 1.4, full: 3.7,
		fast: rise(18.6, 15, 1.4, 3.7), slow: rise(25, 300, 1.4, 3.7), steps: []float64{1, 0.85, 0.7, 0.55}, limit: 80,
	}
	pi3Plus = kind{
		name: "pi3-plus", revision: "3B+", cores: 4, memoryMB: 1024, linkMbit: 1000, idle: 1.9, full: 5.1,
		fast: rise(10, 15, 1.9, 5.1), slow: rise(23, 300, 1.9, 5.1), steps: []float64{1, 0.86, 0.7, 0.5}, limit: 80, soft: 60,
	}
	zero2 = kind{
		name: "zero2", revision: "Zero 2 W", cores: 4, memoryMB: 512, idle: 0.75, full: 2.4,
		fast: rise(15, 17, 0.75, 2.4), slow: rise(4.5, 200, 0.75, 2.4), steps: []float64{1, 0.85, 0.7, 0.6}, limit: 80,
	}
	rock5 = kind{
		name: "rock5", cores: 8, memoryMB: 16384, linkMbit: 1000, idle: 2.5, full: 10,
		fast: rise(10, 2, 2.5, 10), slow: rise(20, 90, 2.5, 10), steps: []float64{1, 0.85, 0.7, 0.55}, limit: 85,
	}
	pi4Steps = []float64{1, 1000. / 1500, 750. / 1500, 600. / 1500}
)

const (
	wholeBand  = 5 // K above the limit at which the slowest step is reached
	releases   = 1 // K below where a step began at which it ends; a guess
	clockPower = 2 // power grows with this power of the clock; a guess
)

// watts is the power with cores' worth of work done at a clock.
func (k *kind) watts(done, clock float64) float64 {
	return k.idle + (k.full-k.idle)*done/k.cores*math.Pow(clock, clockPower-1)
}

// step is the clock's step at a temperature, when it was at one: it goes down by steps
// that are spread from the limit to wholeBand above it, and up with hysteresis.
func (k *kind) step(at int, celsius float64) int {
	down, up := k.wanted(celsius), k.wanted(celsius+releases)
	return min(max(at, down), max(up, down))
}

func (k *kind) wanted(celsius float64) int {
	slowest := len(k.steps) - 1
	switch over := celsius - k.limit; {
	case over >= wholeBand:
		return slowest
	case over >= 0:
		return min(1+int(over/wholeBand*float64(slowest)), slowest)
	case k.soft > 0 && celsius >= k.soft:
		return 1
	}
	return 0
}
