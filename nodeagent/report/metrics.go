package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"bramble.dev/bramble/hw"
)

// MetricsType is the Content-Type of what Metrics writes: Prometheus' text format.
const MetricsType = "text/plain; version=0.0.4; charset=utf-8"

// metric is a family of Prometheus' text format.
type metric struct {
	name, kind, help string
	samples          []sample
}

type sample struct {
	labels string // `chip="x",sensor="temp1"`
	value  float64
}

// add adds a reading, if it holds, in units of by.
func (m *metric) add(labels string, r hw.Reading[int64], by float64) {
	if r.OK() {
		m.samples = append(m.samples, sample{labels, float64(r.Value) / by})
	}
}

func (m *metric) flag(labels string, on bool) {
	value := 0.0
	if on {
		value = 1
	}
	m.samples = append(m.samples, sample{labels, value})
}

// Metrics writes what the board says in Prometheus' text format, by the names that
// node_exporter has for it; what it has no name for begins with bramble_. The format
// is written by hand: the library for it is larger than all sensors.
func (h *Hardware) Metrics(w io.Writer) error {
	s := h.Board.Snapshot()
	out := bufio.NewWriter(w)
	for _, group := range [][]metric{heatMetrics(s), powerMetrics(s), processorMetrics(s), storageMetrics(s), linkMetrics(s), conditionMetrics(h.Conditions())} {
		for _, m := range group {
			if len(m.samples) == 0 {
				continue
			}
			fmt.Fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", m.name, m.help, m.name, m.kind)
			for _, v := range m.samples {
				labels := v.labels
				if labels != "" {
					labels = "{" + labels + "}"
				}
				fmt.Fprintf(out, "%s%s %v\n", m.name, labels, v.value)
			}
		}
	}
	return out.Flush()
}

// label writes name="value" with what the format wants escaped.
func label(name, value string) string {
	return name + `="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(value) + `"`
}

func heatMetrics(s hw.Snapshot) []metric {
	zones := metric{name: "node_thermal_zone_temp", kind: "gauge", help: "Temperature of a thermal zone, in degrees Celsius."}
	for i, z := range s.Thermal.Zones {
		zones.add(label("zone", fmt.Sprint(i))+","+label("type", z.Type), z.Temp, 1000)
	}
	state := metric{name: "node_cooling_device_cur_state", kind: "gauge", help: "How much a cooling device does."}
	for i, c := range s.Thermal.Cooling {
		state.add(label("name", fmt.Sprint(i))+","+label("type", c.Type), c.State, 1)
	}
	temp := metric{name: "node_hwmon_temp_celsius", kind: "gauge", help: "Temperature of a chip."}
	fan := metric{name: "node_hwmon_fan_rpm", kind: "gauge", help: "Turns of a fan in a minute."}
	volts := metric{name: "node_hwmon_in_volts", kind: "gauge", help: "Voltage that a chip measures."}
	amps := metric{name: "node_hwmon_curr_amps", kind: "gauge", help: "Current that a chip measures."}
	watts := metric{name: "node_hwmon_power_watt", kind: "gauge", help: "Power that a chip measures."}
	for _, c := range s.Channels {
		labels := label("chip", c.Chip) + "," + label("sensor", c.Name)
		switch c.Kind {
		case hw.KindTemp:
			temp.add(labels, c.Value, 1000)
		case hw.KindFan:
			fan.add(labels, c.Value, 1)
		case hw.KindVoltage:
			volts.add(labels, c.Value, 1000)
		case hw.KindCurrent:
			amps.add(labels, c.Value, 1000)
		case hw.KindPower:
			watts.add(labels, c.Value, 1e6)
		}
	}
	return []metric{zones, state, temp, fan, volts, amps, watts}
}

func powerMetrics(s hw.Snapshot) []metric {
	bits := metric{name: "bramble_throttled_bits", kind: "gauge", help: "The firmware's answer to get_throttled."}
	if s.Throttle.Bits.OK() {
		bits.samples = []sample{{"", float64(s.Throttle.Bits.Value)}}
	}
	low := metric{name: "bramble_under_voltage_total", kind: "counter", help: "How often the supply was too low since the agent was started."}
	if _, known := s.Throttle.Low(); known {
		low.samples = []sample{{"", float64(s.Throttle.Alarms)}}
	}
	percent := metric{name: "node_power_supply_capacity", kind: "gauge", help: "Charge of a battery, in percent."}
	online := metric{name: "node_power_supply_online", kind: "gauge", help: "Whether a supply has power."}
	for _, p := range s.Power.Supplies {
		percent.add(label("power_supply", p.Name), p.Percent, 1)
		online.add(label("power_supply", p.Name), p.Online, 1)
	}
	return []metric{bits, low, percent, online}
}

func processorMetrics(s hw.Snapshot) []metric {
	hertz := metric{name: "node_cpu_scaling_frequency_hertz", kind: "gauge", help: "Clock as the kernel believes."}
	for i, p := range s.CPU.Policies {
		hertz.add(label("cpu", fmt.Sprint(i)), p.Current, 0.001)
	}
	load := metric{name: "node_load1", kind: "gauge", help: "Load over a minute."}
	load.add("", s.CPU.Load1, 100)
	one := func(name, help string, r hw.Reading[int64]) metric {
		m := metric{name: name, kind: "gauge", help: help}
		m.add("", r, 1)
		return m
	}
	all := []metric{
		hertz, load,
		one("node_memory_MemTotal_bytes", "Memory.", s.Memory.Total),
		one("node_memory_MemAvailable_bytes", "Memory that can be had without swapping.", s.Memory.Available),
		one("node_memory_SwapTotal_bytes", "Swap.", s.Memory.SwapTotal),
		one("node_memory_SwapFree_bytes", "Swap that is free.", s.Memory.SwapFree),
	}
	for _, p := range []struct {
		name string
		r    hw.Reading[hw.Stall]
	}{{"cpu", s.Pressure.CPU}, {"memory", s.Pressure.Memory}, {"io", s.Pressure.IO}} {
		m := metric{name: "node_pressure_" + p.name + "_waiting_seconds_total", kind: "counter", help: "Time in which some task waited."}
		if p.r.OK() {
			m.samples = []sample{{"", float64(p.r.Value.Some.TotalMicros) / 1e6}}
		}
		all = append(all, m)
	}
	return all
}

func storageMetrics(s hw.Snapshot) []metric {
	size := metric{name: "node_filesystem_size_bytes", kind: "gauge", help: "Size of a file system."}
	free := metric{name: "node_filesystem_avail_bytes", kind: "gauge", help: "Space that is free for other users than root."}
	readOnly := metric{name: "node_filesystem_readonly", kind: "gauge", help: "Whether a file system is read-only."}
	failures := metric{name: "bramble_ext4_errors", kind: "gauge", help: "Errors that ext4 counted."}
	for _, m := range s.Mounts {
		labels := label("device", m.Device) + "," + label("fstype", m.Type) + "," + label("mountpoint", m.Path)
		size.add(labels, m.Size, 1)
		free.add(labels, m.Free, 1)
		readOnly.flag(labels, m.ReadOnly)
		failures.add(labels, m.Errors, 1)
	}
	written := metric{name: "node_disk_written_bytes_total", kind: "counter", help: "Bytes written since the boot."}
	read := metric{name: "node_disk_read_bytes_total", kind: "counter", help: "Bytes read since the boot."}
	life := metric{name: "bramble_disk_life_used_percent", kind: "gauge", help: "How much of its life a device has used, at most."}
	for _, d := range s.Disks {
		written.add(label("device", d.Name), d.Written, 1)
		read.add(label("device", d.Name), d.Read, 1)
		if d.Wear.OK() {
			life.samples = append(life.samples, sample{label("device", d.Name), float64(d.Wear.Value.UsedPercent)})
		}
	}
	return []metric{size, free, readOnly, failures, written, read, life}
}

func linkMetrics(s hw.Snapshot) []metric {
	up := metric{name: "node_network_up", kind: "gauge", help: "Whether a link is up."}
	speed := metric{name: "node_network_speed_bytes", kind: "gauge", help: "Speed of a link, in bytes a second."}
	received := metric{name: "node_network_receive_bytes_total", kind: "counter", help: "Bytes received."}
	sent := metric{name: "node_network_transmit_bytes_total", kind: "counter", help: "Bytes sent."}
	for _, l := range s.Links {
		labels := label("device", l.Name)
		up.flag(labels, l.State == "up")
		speed.add(labels, l.Speed, 8e-6) // of Mbit/s
		received.add(labels, l.RxBytes, 1)
		sent.add(labels, l.TxBytes, 1)
	}
	signal := metric{name: "node_wifi_station_signal_dbm", kind: "gauge", help: "How well a station of Wi-Fi hears."}
	for _, w := range s.WiFi {
		signal.add(label("device", w.Interface), w.SignalDBm, 1)
	}
	synced := metric{name: "node_timex_sync_status", kind: "gauge", help: "Whether the clock is set by somebody."}
	if s.Clock.Synchronized.OK() {
		synced.flag("", s.Clock.Synchronized.Value)
	}
	return []metric{up, speed, received, sent, signal, synced}
}

func conditionMetrics(conditions []hw.Condition) []metric {
	m := metric{name: "bramble_board_condition", kind: "gauge", help: "Whether something is wrong with the board (docs/hardware.md)."}
	for _, c := range conditions {
		if c.Known {
			m.flag(label("condition", string(c.Type)), c.On)
		}
	}
	return []metric{m}
}
