package device

import (
	"path/filepath"
	"slices"
	"strings"

	"bramble.dev/bramble/hw"
	"bramble.dev/bramble/server/api"
)

// Domain is that of all resources here.
const Domain = api.Group + "/"

// offer is a device as pods may ask for it.
type offer struct {
	hw.Device
	resources []string // of its classes, "edge.bramble.dev/serial"; and of its names, "edge.bramble.dev/serial.ttyUSB0"
	key       string   // the name of those that stays longest
	kernels   string   // the name of those that the kernel gave
}

// named says that a resource is a device's own and not its class's.
func named(resource string) bool { return strings.Contains(strings.TrimPrefix(resource, Domain), ".") }

// classes are what a device is asked for as without a name; none of one that no
// container can be given. A device of USB is given by its names alone: of its class
// anything could come.
func classes(d hw.Device) []string {
	if d.Class == hw.USB {
		return nil
	}
	return d.Kinds()
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
	if d.Path == "" || d.Number == "" || !d.Access.OK() || !d.Access.Value || d.IsHub() { // of which no container has a use
		return o
	}
	for _, class := range classes(d) {
		o.resources = append(o.resources, Domain+class)
	}
	for _, name := range names(d) {
		resource := Domain + api.FitName(string(d.Class)+"."+name)
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
