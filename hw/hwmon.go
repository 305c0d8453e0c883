package hw

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Kind is what a Channel measures, and by that its unit (Documentation/hwmon/sysfs-interface.rst).
type Kind string

// The kinds of channels.
const (
	KindTemp    Kind = "temp"  // m°C
	KindFan     Kind = "fan"   // revolutions a minute; 0: it stands still, or does not tell
	KindVoltage Kind = "in"    // mV
	KindCurrent Kind = "curr"  // mA
	KindPower   Kind = "power" // µW
)

// Channel is one input of a chip that watches hardware.
type Channel struct {
	Chip  string         `json:"chip"` // its name, and a number if there are several: "nvme", "nvme-2"
	Name  string         `json:"name"` // "temp1"
	Label string         `json:"label,omitempty"`
	Kind  Kind           `json:"kind"`
	Value Reading[int64] `json:"value"`
}

var kinds = []Kind{KindTemp, KindFan, KindVoltage, KindCurrent, KindPower}

// perChip is how many channels of a kind are read of a chip.
const perChip = 16

type hwmon struct {
	*reader
	channels []channel
}

type channel struct {
	Channel
	file *file
}

// chip is a directory of /sys/class/hwmon.
type chip struct{ key, name, path string }

func newHwmon(r *reader) sensor { return &hwmon{reader: r} }

// chips lists the chips by name and then by the device that they belong to: the
// numbers of their directories change from boot to boot.
func chips(r *reader) []chip {
	const class = "sys/class/hwmon"
	var all []chip
	where := map[string]string{}
	for _, dir := range r.names(class) {
		c := chip{path: class + "/" + dir}
		if c.name = r.text(c.path, "name"); c.name == "" {
			c.path += "/device" // as drivers before 2.6.36 had it
			if c.name = r.text(c.path, "name"); c.name == "" {
				continue
			}
		}
		where[c.path], _ = filepath.EvalSymlinks(filepath.Join(r.root, class, dir, "device"))
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b chip) int {
		if a.name != b.name {
			return strings.Compare(a.name, b.name)
		}
		return strings.Compare(where[a.path], where[b.path])
	})
	for i := range all {
		all[i].key = all[i].name
		same := 0
		for _, before := range all[:i] {
			if before.name == all[i].name {
				same++
			}
		}
		if same > 0 {
			all[i].key = fmt.Sprintf("%s-%d", all[i].name, same+1)
		}
	}
	return all
}

func (h *hwmon) scan() {
	h.channels = nil
	for _, chip := range chips(h.reader) {
		counts := map[Kind]int{}
		for _, name := range h.names(chip.path) {
			name, input := strings.CutSuffix(name, "_input")
			prefix, n := splitNumber(name)
			kind := Kind(prefix)
			if !input || n < 0 || counts[kind] == perChip || !slices.Contains(kinds, kind) {
				continue
			}
			counts[kind]++
			h.channels = append(h.channels, channel{
				Channel: Channel{Chip: chip.key, Name: name, Kind: kind, Label: h.text(chip.path, name+"_label")},
				file:    h.open(chip.path, name+"_input"),
			})
		}
	}
}

func (h *hwmon) sample() {
	for i := range h.channels {
		c := &h.channels[i]
		value, err := h.integer(c.file)
		if c.Kind == KindTemp && err == nil && !possible(value) {
			err = ErrImplausible
		}
		c.Value = Reading[int64]{Value: value, At: h.now(), Err: err}
		if c.file != nil {
			c.Value.Source = c.file.path
		}
	}
}

func (h *hwmon) put(s *Snapshot) {
	s.Channels = s.Channels[:0]
	for i := range h.channels {
		s.Channels = append(s.Channels, h.channels[i].Channel)
	}
}
