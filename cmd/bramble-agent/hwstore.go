package main

import (
	"fmt"
	"time"

	"bramble.dev/bramble/hw"
)

func diskLines(disks []hw.Disk) (l lines) {
	for _, d := range disks {
		line := fmt.Sprintf("%s: %s", d.Name, d.Kind)
		if d.Model != "" {
			line += " " + d.Model
		}
		if d.Size > 0 {
			line += ", " + size(d.Size)
		}
		if d.Card != nil && d.Card.Made != "" {
			line += ", made " + d.Card.Made
		}
		if d.Written.OK() {
			line += ", " + size(d.Written.Value) + " written since the boot"
		}
		l.add("%s", line)
		reading(&l, d.Name+" wear ", d.Wear, func(w hw.Wear) string {
			text := fmt.Sprintf("at most %d %% of its life used", w.UsedPercent)
			if w.UsedPercent > 100 {
				text = "more used than its maker promises"
			}
			if w.PreEOL != "" {
				text += ", spare blocks " + w.PreEOL
			}
			return text
		})
	}
	return l
}

func mountLines(mounts []hw.Mount) (l lines) {
	for _, m := range mounts {
		state := ""
		switch {
		case m.Flipped:
			state = ", READ-ONLY since the kernel found errors"
		case m.ReadOnly:
			state = ", read-only"
		}
		if m.Errors.OK() && m.Errors.Value > 0 {
			state += fmt.Sprintf(", %d errors found", m.Errors.Value)
		}
		reading(&l, m.Path+" ", m.Free, func(v int64) string {
			return fmt.Sprintf("(%s on %s): %s of %s free%s", m.Type, m.Device, size(v), size(m.Size.Value), state)
		})
	}
	return l
}

func linkLines(s hw.Snapshot) (l lines) {
	for _, k := range s.Links {
		line := k.Name + " " + k.State
		if k.Wireless {
			line += ", wireless"
		}
		if k.Speed.OK() {
			line += fmt.Sprintf(", %d Mbit/s %s", k.Speed.Value, k.Duplex)
		}
		if bad := k.RxErrors.Value + k.TxErrors.Value; bad > 0 {
			line += fmt.Sprintf(", %d errors", bad)
		}
		if k.Changes.OK() && k.Changes.Value > 2 { // down and up, once, at the boot
			line += fmt.Sprintf(", lost or found %d times", k.Changes.Value)
		}
		l.add("%s", line)
	}
	for _, w := range s.WiFi {
		reading(&l, w.Interface+" hears ", w.SignalDBm, func(dBm int64) string { return fmt.Sprintf("%d dBm of %q", dBm, w.SSID) })
	}
	return l
}

func probeLines(probes []hw.Probe) (l lines) {
	for _, p := range probes {
		reading(&l, p.ID+" ", p.MilliC, hw.Celsius)
	}
	return l
}

func deviceLines(devices []hw.Device) (l lines) {
	for _, d := range devices {
		line := string(d.Class) + " " + d.Name
		if d.Label != "" && d.Label != d.Name {
			line += " (" + d.Label + ")"
		}
		if d.Access.OK() && !d.Access.Value {
			line += ", which this user may not open"
		}
		l.add("%s", line)
	}
	return l
}

func supplyLines(s hw.Snapshot) (l lines) {
	for _, p := range s.Power.Supplies {
		line := p.Name + ": " + p.Type
		if !p.Own {
			line += " of a device beside the board"
		}
		if p.Status.OK() {
			line += ", " + p.Status.Value
		}
		if p.Percent.OK() {
			line += fmt.Sprintf(", %d %%", p.Percent.Value)
		}
		if p.MicroV.OK() {
			line += fmt.Sprintf(", %.2f V", float64(p.MicroV.Value)/1e6)
		}
		l.add("%s", line)
	}
	reading(&l, "", s.Firmware.PMIC, func(p hw.PMIC) string {
		return fmt.Sprintf("5 V supply at %.2f V, the rails take %.1f W, the board some %.1f W",
			float64(p.ExtMicroV)/1e6, float64(p.RailsMicroW)/1e6, float64(p.BoardMicroW)/1e6)
	})
	return l
}

func timeLines(c hw.Clock) (l lines) {
	reading(&l, "", c.Synchronized, func(yes bool) string {
		if yes {
			return "synchronized"
		}
		return "not synchronized"
	})
	if c.RTC != "" {
		l.add("runs on without power: %s", c.RTC)
	}
	reading(&l, "up for ", c.Uptime, func(s int64) string { return (time.Duration(s) * time.Second).String() })
	return l
}

func watchdogLines(dogs []hw.Watchdog) (l lines) {
	for _, d := range dogs {
		l.add("%s: %s, %s, %d s", d.Name, d.Identity, d.State, d.Timeout)
	}
	return l
}

func failingLines(failing []hw.Failing) (l lines) {
	for _, f := range failing {
		l.add("%s: %v", f.Sensor, f.Err)
	}
	return l
}
