package hw

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Thermal is how hot it is, in thousandths of a degree Celsius.
type Thermal struct {
	SoC      Reading[int64] `json:"soc"`                      // the hottest zone of processor or SoC, never of a chip beside it
	GPU      Reading[int64] `json:"gpu"`                      // the hottest
	Passive  int64          `json:"passiveMilliC,omitempty"`  // where the kernel begins to slow the SoC down; 0: not told
	Critical int64          `json:"criticalMilliC,omitempty"` // where it switches off; 0: not told
	Zones    []Zone         `json:"zones,omitempty"`
	Cooling  []Cooling      `json:"cooling,omitempty"`
}

// Zone is a thermal zone of the kernel (Documentation/driver-api/thermal/sysfs-api.rst).
type Zone struct {
	Type   string         `json:"type"`
	Source string         `json:"source"`
	Temp   Reading[int64] `json:"temp"`          // m°C
	Off    bool           `json:"off,omitempty"` // its mode is "disabled"
}

// Cooling is what the kernel cools with: a fan, or a lower clock.
type Cooling struct {
	Type  string         `json:"type"`
	State Reading[int64] `json:"state"` // 0: not at all
	Max   int64          `json:"max"`
}

// socZones are how the types of zones begin whose heat is the processor's or the
// SoC's, by kernel: numbers of zones mean nothing.
var socZones = []string{"cpu", "soc", "package", "bigcore", "littlecore", "bcm2835", "sunxi", "tj", "x86_pkg"}

// socChips are the same among chips of hwmon, where the kernel has no zone.
var socChips = []string{"cpu_thermal", "soc_thermal", "coretemp", "k10temp", "scpi_sensors"}

type thermal struct {
	*reader
	zones             []zone
	cooling           []cooling
	soc               []zone // chips instead of zones
	passive, critical int64
}

type zone struct {
	kind, path string
	temp, mode *file
	value      Reading[int64]
	off        bool
	steady     steady
}

type cooling struct {
	kind  string
	max   int64
	state *file
	value Reading[int64]
}

func newThermal(r *reader) sensor { return &thermal{reader: r} }

const thermalClass = "sys/class/thermal"

func (t *thermal) scan() {
	t.zones, t.cooling, t.soc, t.passive, t.critical = nil, nil, nil, 0, 0
	for _, name := range t.names(thermalClass) {
		kind := t.text(thermalClass, name, "type")
		switch {
		case strings.HasPrefix(name, "thermal_zone"):
			z := zone{kind: kind, path: thermalClass + "/" + name}
			z.temp, z.mode = t.open(z.path, "temp"), t.open(z.path, "mode")
			t.zones = append(t.zones, z)
			if z.isSoC() {
				t.trips(z.path)
			}
		case strings.HasPrefix(name, "cooling_device"):
			top, _ := t.number(thermalClass, name, "max_state")
			t.cooling = append(t.cooling, cooling{kind: kind, max: top, state: t.open(thermalClass, name, "cur_state")})
		}
	}
	if slices.ContainsFunc(t.zones, zone.isSoC) {
		return
	}
	for _, chip := range chips(t.reader) {
		if f := t.open(chip.path, "temp1_input"); f != nil && slices.Contains(socChips, chip.name) {
			t.soc = append(t.soc, zone{kind: chip.name, path: chip.path, temp: f})
		}
	}
}

// trips reads where the kernel slows down and where it switches off.
func (t *thermal) trips(path string) {
	for _, name := range t.names(path) {
		n, point := strings.CutPrefix(name, "trip_point_")
		n, kind := strings.CutSuffix(n, "_type")
		if !point || !kind {
			continue
		}
		temp, known := t.number(path, "trip_point_"+n+"_temp")
		if !known || temp <= 0 {
			continue
		}
		switch at := milliC(temp); t.text(path, name) {
		case "passive":
			t.passive = lowest(t.passive, at)
		case "critical":
			t.critical = lowest(t.critical, at)
		}
	}
}

// lowest is the lower of two, of which the first may be 0 for none.
func lowest(a, b int64) int64 {
	if a == 0 {
		return b
	}
	return min(a, b)
}

func (z zone) isSoC() bool {
	kind := strings.ToLower(z.kind)
	return slices.ContainsFunc(socZones, func(p string) bool { return strings.HasPrefix(kind, p) })
}

func (t *thermal) sample() {
	for i := range t.zones {
		t.zones[i].read(t.reader)
	}
	for i := range t.soc {
		t.soc[i].read(t.reader)
	}
	for i := range t.cooling {
		c := &t.cooling[i]
		state, err := t.integer(c.state)
		c.value = read(t.reader, thermalClass, state, err)
	}
}

// read reads a temperature, once more if it cannot be true (raspberrypi/firmware,
// issue 133: -650788984 between two that were right).
func (z *zone) read(r *reader) {
	if mode, err := r.bytes(z.mode); err == nil {
		z.off = string(mode) == "disabled"
	}
	raw, err := r.integer(z.temp)
	if err == nil && !possible(milliC(raw)) {
		raw, err = r.integer(z.temp)
	}
	if err == nil && !z.steady.accept(milliC(raw), r.now()) {
		err = ErrImplausible
	}
	z.value = read(r, z.path, milliC(raw), err)
}

func (t *thermal) put(s *Snapshot) {
	out := &s.Thermal
	out.Passive, out.Critical = t.passive, t.critical
	out.SoC, out.GPU = Reading[int64]{Err: ErrAbsent}, Reading[int64]{Err: ErrAbsent}
	out.Zones, out.Cooling = out.Zones[:0], out.Cooling[:0]
	for i := range t.zones {
		z := &t.zones[i]
		out.Zones = append(out.Zones, Zone{Type: z.kind, Source: z.path, Temp: z.value, Off: z.off})
		if z.isSoC() {
			out.SoC = hotter(out.SoC, z.value)
		}
		if strings.HasPrefix(strings.ToLower(z.kind), "gpu") {
			out.GPU = hotter(out.GPU, z.value)
		}
	}
	for i := range t.soc {
		out.SoC = hotter(out.SoC, t.soc[i].value)
	}
	for _, c := range t.cooling {
		out.Cooling = append(out.Cooling, Cooling{Type: c.kind, State: c.value, Max: c.max})
	}
}

// hotter is the hotter of two readings, or the one that holds, or why none does.
func hotter(a, b Reading[int64]) Reading[int64] {
	if a.Err == nil && (b.Err != nil || a.Value >= b.Value) {
		return a
	}
	return b
}

// Celsius is a temperature as people read it.
func Celsius(milli int64) string { return fmt.Sprintf("%.1f °C", float64(milli)/1000) }

// milliC is what a driver means: some of older vendor kernels write whole degrees,
// and no board that runs is within a fifth of a degree of freezing by chance.
func milliC(raw int64) int64 {
	if raw > -200 && raw < 200 {
		return raw * 1000
	}
	return raw
}

// possible says whether a sensor that works could measure it on a board that runs.
// Sensors that are off say -256 or -263.2 °C.
func possible(milliC int64) bool { return milliC >= -55_000 && milliC <= 150_000 }

// maxJump is the most that two samples of a temperature may differ by unless the
// next one agrees with the second, in m°C, while they are of the same minute.
const maxJump = 20_000

// steady drops glitches from a series of temperatures.
type steady struct {
	last, doubt int64
	at          time.Duration // of last
	known, hit  bool          // last holds; doubt holds
}

// accept says whether a value of now is to be believed.
func (s *steady) accept(milliC int64, now time.Duration) bool {
	if !possible(milliC) {
		return false
	}
	far := func(from int64) bool { return milliC-from > maxJump || from-milliC > maxJump }
	if s.known && now-s.at < time.Minute && far(s.last) && (!s.hit || far(s.doubt)) {
		s.doubt, s.hit = milliC, true
		return false
	}
	*s = steady{last: milliC, at: now, known: true}
	return true
}
