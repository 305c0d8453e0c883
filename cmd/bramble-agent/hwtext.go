package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"bramble.dev/bramble/hw"
)

func isDir(path ...string) bool {
	info, err := os.Stat(filepath.Join(path...))
	return err == nil && info.IsDir()
}

// section is some lines about one thing. It is left out if it has none.
type section struct {
	name  string
	lines []string
}

// printSnapshot writes a snapshot for people.
func printSnapshot(w io.Writer, s hw.Snapshot) error {
	tw := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	for _, part := range []section{
		{"BOARD", boardLines(s.Identity)}, {"PROCESSOR", processorLines(s.Identity)},
		{"TEMPERATURE", thermalLines(s.Thermal)}, {"FANS", fanLines(s)}, {"THROTTLING", throttleLines(s.Throttle)},
		{"CLOCKS", clockLines(s)}, {"LOAD", loadLines(s.CPU)}, {"PRESSURE", pressureLines(s.Pressure)},
		{"MEMORY", memoryLines(s.Memory)}, {"DISKS", diskLines(s.Disks)}, {"FILE SYSTEMS", mountLines(s.Mounts)},
		{"LINKS", linkLines(s)}, {"SUPPLY", supplyLines(s)}, {"TIME", timeLines(s.Clock)},
		{"WATCHDOG", watchdogLines(s.Watchdogs)},
		{"PROBES", probeLines(s.OneWire)}, {"DEVICES", deviceLines(s.Devices)}, {"NO ANSWER", failingLines(s.Failing)},
	} {
		for i, line := range part.lines {
			name := part.name
			if i > 0 {
				name = ""
			}
			if _, err := fmt.Fprintf(tw, "%s\t%s\n", name, line); err != nil {
				return err
			}
		}
	}
	return tw.Flush()
}

// lines are sentences to be; add appends one unless it says nothing.
type lines []string

func (l *lines) add(format string, args ...any) { *l = append(*l, fmt.Sprintf(format, args...)) }

// reading adds a reading: its value as format has it, or why there is none.
func reading[T any](l *lines, name string, r hw.Reading[T], show func(T) string) {
	value, err := r.Get()
	switch {
	case err == nil:
		l.add("%s%s", name, show(value))
	case !errors.Is(err, hw.ErrAbsent):
		l.add("%scannot be read from %s: %v", name, r.Source, err)
	}
}

// size is bytes as people say them, in powers of 1000 as disks are sold.
func size(bytes int64) string {
	value, unit := float64(bytes), "B"
	for _, next := range []string{"kB", "MB", "GB", "TB"} {
		if value < 1000 {
			break
		}
		value, unit = value/1000, next
	}
	if unit == "B" || value >= 100 {
		return fmt.Sprintf("%.0f %s", value, unit)
	}
	return fmt.Sprintf("%.1f %s", value, unit)
}

// memorySize is bytes in powers of 1024 as memory is sold.
func memorySize(bytes int64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}

func boardLines(id hw.Identity) (l lines) {
	parts := []string{}
	if id.Model != "" {
		parts = append(parts, id.Model)
	}
	if id.SoC != "" {
		parts = append(parts, id.SoC)
	}
	if r := id.Revision; r != nil {
		if r.MemoryMB > 0 {
			parts = append(parts, fmt.Sprintf("%d MB soldered", r.MemoryMB))
		}
		parts = append(parts, fmt.Sprintf("revision %06x", r.Code))
	}
	if id.Serial != "" {
		parts = append(parts, "serial "+id.Serial)
	}
	if len(parts) > 0 {
		l.add("%s", strings.Join(parts, ", "))
	}
	return l
}

func processorLines(id hw.Identity) (l lines) {
	for _, c := range id.Processor.Cores {
		l.add("%d × %s", c.Count, c.Name)
	}
	if id.Kernel == "" {
		return l
	}
	line := "kernel " + id.Kernel
	if id.Userland != "" {
		line += ", programs " + id.Userland
	}
	if id.Processor.Variant != "" {
		line += ", images " + id.Processor.Arch + "/" + id.Processor.Variant
	}
	if id.PageSize > 0 {
		line += fmt.Sprintf(", pages of %d KiB", id.PageSize/1024)
	}
	l.add("%s", line)
	return l
}

func thermalLines(t hw.Thermal) (l lines) {
	limits := ""
	if t.Passive > 0 {
		limits += ", slowed down from " + hw.Celsius(t.Passive)
	}
	if t.Critical > 0 {
		limits += ", off at " + hw.Celsius(t.Critical)
	}
	reading(&l, "SoC ", t.SoC, func(v int64) string { return hw.Celsius(v) + limits })
	for _, z := range t.Zones {
		if z.Temp != t.SoC {
			name := z.Type + " "
			if z.Off {
				name += "(off) "
			}
			reading(&l, name, z.Temp, hw.Celsius)
		}
	}
	return l
}

func fanLines(s hw.Snapshot) (l lines) {
	for _, c := range s.Channels {
		if c.Kind == hw.KindFan {
			reading(&l, c.Chip+" ", c.Value, func(v int64) string { return fmt.Sprintf("%d turns a minute", v) })
		}
	}
	for _, c := range s.Thermal.Cooling {
		reading(&l, c.Type+" ", c.State, func(v int64) string { return fmt.Sprintf("at %d of %d", v, c.Max) })
	}
	return l
}

func throttleLines(t hw.Throttle) (l lines) {
	reading(&l, "", t.Bits, func(b hw.ThrottleBits) string {
		return "now: " + said(b.UnderVoltage(), b.Throttled(), b.SoftLimit()) +
			"; since the boot: " + said(b.UnderVoltageSince(), b.ThrottledSince(), false)
	})
	reading(&l, "supply alarm ", t.UnderVoltage, func(on bool) string {
		if on {
			return "on: the supply is too low"
		}
		return "off"
	})
	return l
}

// said is what throttling bits say.
func said(low, slow, soft bool) string {
	var all []string
	for _, what := range []struct {
		is   bool
		text string
	}{{low, "under-voltage"}, {slow, "throttled"}, {soft, "over the soft limit"}} {
		if what.is {
			all = append(all, what.text)
		}
	}
	if all == nil {
		return "nothing"
	}
	return strings.Join(all, ", ")
}

func clockLines(s hw.Snapshot) (l lines) {
	for _, p := range s.CPU.Policies {
		name := "cores " + p.CPUs + ": "
		if p.CPUs == "" {
			name = ""
		}
		reading(&l, name, p.Current, func(kHz int64) string {
			text := fmt.Sprintf("%d MHz", kHz/1000)
			if p.Max > 0 {
				text += fmt.Sprintf(" of %d", p.Max/1000)
			}
			if p.Governor != "" {
				text += ", " + p.Governor
			}
			return text
		})
	}
	reading(&l, "by the firmware ", s.Firmware.ArmHz, func(hz int64) string { return fmt.Sprintf("%d MHz", hz/1e6) })
	return l
}

func loadLines(c hw.CPU) (l lines) {
	reading(&l, "", c.Load1, func(v int64) string {
		text := fmt.Sprintf("%.2f over a minute", float64(v)/100)
		if c.Busy.OK() {
			text += fmt.Sprintf(", cores %.0f %% busy", float64(c.Busy.Value)/10)
		}
		return text
	})
	return l
}

func pressureLines(p hw.Pressure) (l lines) {
	show := func(s hw.Stall) string {
		return fmt.Sprintf("some waited %.1f %% of 10 s, %.1f %% of a minute", s.Some.Avg10, s.Some.Avg60)
	}
	reading(&l, "processor: ", p.CPU, show)
	reading(&l, "memory: ", p.Memory, show)
	reading(&l, "storage: ", p.IO, show)
	if p.Hint != "" {
		l.add("%s", p.Hint)
	}
	return l
}

func memoryLines(m hw.Memory) (l lines) {
	reading(&l, "", m.Available, func(v int64) string { return memorySize(v) + " of " + memorySize(m.Total.Value) + " available" })
	if m.SwapTotal.OK() && m.SwapTotal.Value > 0 {
		reading(&l, "swap ", m.SwapFree, func(v int64) string { return memorySize(v) + " of " + memorySize(m.SwapTotal.Value) + " free" })
	}
	for _, z := range m.Zram {
		if z.Data.Value > 0 {
			reading(&l, z.Device+" ", z.Data, func(v int64) string { return memorySize(v) + " in " + memorySize(z.Used.Value) })
		}
	}
	return l
}
