package device

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"slices"
	"strings"

	"bramble.dev/bramble/hw"
)

// Domain is that of all resources here.
const Domain = "edge.bramble.dev/"

// maxName is the longest name of a resource after its domain, of a label too.
const maxName = 63

// hub is a type of USB that no container has a use for.
const hub = "09"

// offer is a device as pods may ask for it.
type offer struct {
	hw.Device
	resources []string // of its classes, "edge.bramble.dev/serial"; and of its names, "edge.bramble.dev/serial.ttyUSB0"
	key       string   // the name of those that stays longest
	kernels   string   // the name of those that the kernel gave
}

// named says that a resource is a device's own and not its class's.
func named(resource string) bool { return strings.Contains(strings.TrimPrefix(resource, Domain), ".") }

// Classes are what a device is asked for as, its own class first; none of one that no
// container can be given. A device of USB is given by its names alone: of its class
// anything could come.
func Classes(d hw.Device) []string {
	switch {
	case d.Class == hw.USB, d.Class == hw.OneWire, d.Class == hw.Bluetooth:
		return nil
	case d.Class == hw.NPU:
		return append([]string{string(hw.NPU)}, maker(d)...)
	}
	return []string{string(d.Class)}
}

// maker is what people call what computes neural networks.
func maker(d hw.Device) []string {
	switch prefix := strings.TrimRight(d.Name, "0123456789"); {
	case prefix == "hailo":
		return []string{"hailo"}
	case prefix == "apex_", strings.HasPrefix(d.Label, "Coral"):
		return []string{"coral"}
	case strings.EqualFold(d.Label, "rknpu"):
		return []string{"rknpu"}
	}
	return nil
}

// names are what a device is called: the kernel's name, which may be another's after
// a boot, and what stays, the last.
func names(d hw.Device) []string {
	all := []string{d.Name}
	switch stable := filepath.Base(d.Stable); {
	case d.Stable != "":
		all = append(all, stable)
	case d.Class == hw.GPIO && d.Label != "":
		all = append(all, d.Label)
	case (d.Class == hw.I2C || d.Class == hw.Camera) && d.Bus != "":
		all = append(all, d.Bus)
	}
	return all
}

// offerOf is a device with the resources that it is; without any if no container can
// be given it.
func offerOf(d hw.Device) offer {
	o := offer{Device: d}
	if d.Path == "" || d.Number == "" || !d.Access.OK() || !d.Access.Value || d.Class == hw.USB && d.Type == hub {
		return o
	}
	for _, class := range Classes(d) {
		o.resources = append(o.resources, Domain+class)
	}
	for _, name := range names(d) {
		resource := Domain + Fit(string(d.Class)+"."+name, maxName)
		if !slices.Contains(o.resources, resource) {
			o.resources = append(o.resources, resource)
		}
		o.key = resource
		if o.kernels == "" {
			o.kernels = resource
		}
	}
	return o
}

// Fit makes of a text what may be a name of a resource or a label's value of at most
// limit bytes: letters, digits, dashes, dots and underscores, without the latter three
// at its ends. Of what is too long the middle of a hash of all takes the rest's place.
func Fit(text string, limit int) string {
	name := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-._", c) {
			return c
		}
		return '-'
	}, text)
	if len(name) > limit {
		sum := sha256.Sum256([]byte(text))
		const digits = 8
		name = strings.TrimRight(name[:limit-digits-1], "-._") + "-" + hex.EncodeToString(sum[:digits/2])
	}
	return strings.Trim(name, "-._")
}
