package hw_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bramble.dev/bramble/hw"
)

// boardCase is a tree of files, the errors that drivers return in it, and what is to
// be read of it.
type boardCase struct {
	Origin     string            `json:"origin"`
	ReadErrors map[string]string `json:"read_errors"`
	Expect     map[string]any    `json:"expect"`
}

// TestCases reads boards that others had trouble with, as testdata/ORIGIN.md says.
// HW_CASES names another folder of such cases.
func TestCases(t *testing.T) {
	folder := os.Getenv("HW_CASES")
	if folder == "" {
		folder = filepath.Join("testdata", "cases")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*", "case.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases in %s: %v", folder, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var c boardCase
			if err := json.Unmarshal(data, &c); err != nil {
				t.Fatal(err)
			}
			c.check(t, filepath.Join(filepath.Dir(file), "root"))
		})
	}
}

func (c boardCase) check(t *testing.T, root string) {
	t.Helper()
	if len(c.Expect) == 0 {
		t.Fatal("nothing is expected")
	}
	board := hw.Open(hw.Config{Root: root, Pread: failing(t, c.ReadErrors), Command: recorded(root)})
	defer board.Close()
	began := time.Now()
	s := board.Sample(t.Context())
	took := time.Since(began)
	if len(s.Failing) > 0 {
		t.Errorf("late: %v", s.Failing)
	}
	for key, want := range c.Expect {
		switch key {
		case "max_ms":
			if limit := time.Duration(want.(float64)) * time.Millisecond; took > limit {
				t.Errorf("took %v, at most %v", took, limit)
			}
			continue
		case "accepted":
			compare(t, key, accepted(t, filepath.Join(root, "sequence.txt")), want)
			continue
		case "unavailable":
			for _, name := range want.([]any) {
				if at := zone(s, name.(string)); at == nil || at.Temp.OK() {
					t.Errorf("%s: %v, want it listed and without a value", name, at)
				}
			}
			continue
		}
		got, known := reading(s, key)
		if !known {
			t.Errorf("nothing is known here of what the case expects: %q", key)
			continue
		}
		compare(t, key, got, want)
	}
}

// failing is pread(2), but for the files that a driver fails for.
func failing(t *testing.T, errs map[string]string) func(string, int, []byte, int64) (int, error) {
	failures := map[string]error{}
	for path, name := range errs {
		if failures[path] = errno(name); failures[path] == nil {
			t.Fatalf("no error is called %s", name)
		}
	}
	return func(path string, fd int, p []byte, off int64) (int, error) {
		if err := failures[path]; err != nil {
			return 0, err
		}
		return unix.Pread(fd, p, off)
	}
}

func errno(name string) error {
	for n := range unix.Errno(200) {
		if unix.ErrnoName(n) == name || name == "EOPNOTSUPP" && n == unix.EOPNOTSUPP || name == "EWOULDBLOCK" && n == unix.EAGAIN {
			return n
		}
	}
	return nil
}

// recorded answers as the firmware did.
func recorded(root string) func(string) (string, error) {
	return func(command string) (string, error) {
		name := strings.ReplaceAll(command, " ", "_")
		data, err := os.ReadFile(filepath.Join(root, "vcgencmd", name))
		if errors.Is(err, fs.ErrNotExist) {
			data, err = os.ReadFile(filepath.Join(root, name))
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = hw.ErrAbsent
		}
		return string(data), err
	}
}

// accepted is what is believed of a series of readings of one zone, in °C.
func accepted(t *testing.T, file string) any {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	dir := filepath.Join(root, "sys/class/thermal/thermal_zone0")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("type", "cpu-thermal\n")
	board := hw.Open(hw.Config{Root: root})
	defer board.Close()
	var all []any
	for line := range strings.Lines(string(data)) {
		write("temp", line)
		all = append(all, milli(board.Sample(t.Context()).Thermal.SoC))
	}
	return all
}

func zone(s hw.Snapshot, name string) *hw.Zone {
	for i := range s.Thermal.Zones {
		if s.Thermal.Zones[i].Type == name {
			return &s.Thermal.Zones[i]
		}
	}
	return nil
}

// milli is a reading in thousandths as a number; nil if it does not hold.
func milli(r hw.Reading[int64]) any { return scaled(r, 1000) }

func scaled(r hw.Reading[int64], by float64) any {
	if !r.OK() {
		return nil
	}
	return float64(r.Value) / by
}

var stallKey = regexp.MustCompile(`^(cpu|memory|io)_(some|full)_(avg10|avg60|avg300|total_us)$`)

// reading is what a snapshot has of what a case calls key; nil if it has none.
func reading(s hw.Snapshot, key string) (got any, known bool) {
	if parts := stallKey.FindStringSubmatch(key); parts != nil {
		return stall(s.Pressure, parts[1], parts[2], parts[3]), true
	}
	for _, group := range []func(hw.Snapshot, string) (any, bool){thermalReading, firmwareReading, processorReading, storageReading, otherReading, airReading} {
		if got, known = group(s, key); known {
			return got, true
		}
	}
	return nil, false
}

func stall(p hw.Pressure, what, kind, field string) any {
	r := map[string]hw.Reading[hw.Stall]{"cpu": p.CPU, "memory": p.Memory, "io": p.IO}[what]
	share := r.Value.Some
	if kind == "full" {
		share = r.Value.Full
	}
	if !r.OK() || kind == "full" && !r.Value.HasFull {
		return nil
	}
	return map[string]float64{"avg10": share.Avg10, "avg60": share.Avg60, "avg300": share.Avg300, "total_us": float64(share.TotalMicros)}[field]
}

func thermalReading(s hw.Snapshot, key string) (any, bool) {
	switch key {
	case "zones":
		zones := map[string]any{}
		for _, z := range s.Thermal.Zones {
			if z.Temp.OK() {
				zones[z.Type] = milli(z.Temp)
			}
		}
		return zones, true
	case "soc_temp_c":
		return milli(s.Thermal.SoC), true
	case "gpu_temp_c":
		return milli(s.Thermal.GPU), true
	case "io_chip_temp_c":
		for _, c := range s.Channels {
			if c.Chip == "rp1_adc" && c.Name == "temp1" {
				return milli(c.Value), true
			}
		}
		return nil, true
	}
	return nil, false
}

func firmwareReading(s hw.Snapshot, key string) (any, bool) {
	bits := s.Throttle.Bits.Value
	switch key {
	case "value", "throttled_value":
		if !s.Throttle.Bits.OK() {
			return nil, true
		}
		return float64(bits), true
	case "under_voltage_now":
		return bits.UnderVoltage() || s.Throttle.UnderVoltage.Value, true
	case "throttled_now":
		return bits.Throttled(), true
	case "freq_capped":
		return bits.Capped(), true
	case "soft_limit":
		return bits.SoftLimit(), true
	case "under_voltage_since":
		return bits.UnderVoltageSince(), true
	case "throttled_since":
		return bits.ThrottledSince(), true
	case "cur_mhz_firmware":
		return scaled(s.Firmware.ArmHz, 1e6), true
	case "ext5v_v", "rtc_batt_v", "rails_w", "board_w_estimate", "rails":
		p := s.Firmware.PMIC.Value
		if !s.Firmware.PMIC.OK() {
			return nil, true
		}
		return map[string]float64{
			"ext5v_v": float64(p.ExtMicroV) / 1e6, "rtc_batt_v": float64(p.BattMicroV) / 1e6, "rails": float64(p.Count),
			"rails_w": float64(p.RailsMicroW) / 1e6, "board_w_estimate": float64(p.BoardMicroW) / 1e6,
		}[key], true
	}
	return nil, false
}

func processorReading(s hw.Snapshot, key string) (any, bool) {
	var fastest hw.Policy
	for _, p := range s.CPU.Policies {
		if p.Max >= fastest.Max {
			fastest = p
		}
	}
	id := s.Identity
	switch key {
	case "cores":
		return float64(id.CPUs), true
	case "max_mhz":
		if fastest.Max == 0 {
			return nil, true
		}
		return float64(fastest.Max) / 1000, true
	case "cur_mhz", "cur_mhz_kernel":
		return scaled(fastest.Current, 1000), true
	case "soc":
		return id.SoC, true
	case "model":
		return id.Model, true
	case "revision":
		return revision(id, func(r *hw.Revision) any { return fmt.Sprintf("%06x", r.Code) }), true
	case "ram_mb":
		return revision(id, func(r *hw.Revision) any { return float64(r.MemoryMB) }), true
	case "model_type":
		return revision(id, func(r *hw.Revision) any { return r.Type }), true
	case "has_aes", "has_asimd", "neon":
		return id.Processor.Has(strings.TrimPrefix(key, "has_")), true
	case "arch":
		return id.Processor.Arch, true
	case "variant":
		return id.Processor.Variant, true
	case "memory_controller":
		return s.Cgroups.Memory.Value, true
	}
	return nil, false
}

func revision(id hw.Identity, get func(*hw.Revision) any) any {
	if id.Revision == nil {
		return nil
	}
	return get(id.Revision)
}

func storageReading(s hw.Snapshot, key string) (any, bool) {
	var d hw.Disk
	if len(s.Disks) > 0 {
		d = s.Disks[0]
	}
	if d.Card == nil {
		d.Card = &hw.Card{}
	}
	wear := func(value any) any {
		if !d.Wear.OK() {
			return nil
		}
		return value
	}
	switch key {
	case "used_pct_max", "wear_pct":
		return wear(float64(d.Wear.Value.UsedPercent)), true
	case "pre_eol":
		return wear(d.Wear.Value.PreEOL), true
	case "wear_source":
		return d.WearBy, true
	case "type":
		return d.Kind, true
	case "manfid":
		return float64(d.Card.Maker), true
	case "oem":
		return d.Card.OEM, true
	case "made":
		if d.Card.Made == "" {
			return nil, true
		}
		return d.Card.Made, true
	}
	return nil, false
}

func otherReading(s hw.Snapshot, key string) (any, bool) {
	switch key {
	case "psi":
		if p := s.Pressure; p.CPU.OK() || p.Memory.OK() || p.IO.OK() {
			return p, true
		}
		return nil, true
	case "hint":
		return s.Pressure.Hint, true
	case "system_batteries":
		count := 0.0
		for _, supply := range s.Power.Supplies {
			if supply.Battery() {
				count++
			}
		}
		return count, true
	case "on_battery":
		return s.Power.OnBattery, true
	}
	return nil, false
}

// compare compares what was read with what JSON says: numbers to a thousandth, and of
// a hint what it must name.
func compare(t *testing.T, key string, got, want any) {
	t.Helper()
	switch w := want.(type) {
	case float64:
		if g, ok := got.(float64); ok && math.Abs(g-w) <= 0.001 {
			return
		}
	case string:
		if g, ok := got.(string); ok && (g == w || key == "hint" && strings.Contains(g, w)) {
			return
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			break
		}
		for i := range w {
			compare(t, fmt.Sprintf("%s[%d]", key, i), g[i], w[i])
		}
		return
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			break
		}
		for k := range w {
			compare(t, key+"."+k, g[k], w[k])
		}
		return
	default:
		if got == want {
			return
		}
	}
	t.Errorf("%s: got %v, want %v", key, got, want)
}

func airReading(s hw.Snapshot, key string) (any, bool) {
	whole := func(r hw.Reading[int64]) any {
		if !r.OK() {
			return nil
		}
		return float64(r.Value)
	}
	switch key {
	case "ifaces":
		stations := map[string]any{}
		for _, w := range s.WiFi {
			stations[w.Interface] = map[string]any{"link": whole(w.LinkQuality), "level_dbm": whole(w.SignalDBm), "noise_dbm": whole(w.NoiseDBm)}
		}
		return stations, true
	case "c":
		if len(s.OneWire) != 1 {
			return nil, true
		}
		return milli(s.OneWire[0].MilliC), true
	case "crc_ok":
		return len(s.OneWire) == 1 && s.OneWire[0].MilliC.OK(), true
	}
	return nil, false
}
