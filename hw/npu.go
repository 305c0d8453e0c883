package hw

import (
	"slices"
	"strings"
)

// npuNodes are the classes of the kernel whose nodes compute neural networks: Hailo,
// Google's Edge TPU at PCI, and what the kernel has a class for.
var npuNodes = []struct{ class, prefix, node string }{
	{"sys/class/hailo_chardev", "hailo", ""},
	{"sys/class/apex", "apex_", ""},
	{"sys/class/accel", "accel", "accel/"},
}

// npuDrivers have a node among those of graphics.
var npuDrivers = []string{"RKNPU", "rknpu"}

// coral is Google's Edge TPU at USB, before and after its program is loaded.
var coral = []string{"1a6e:089a", "18d1:9302"}

const coralLabel = "Coral USB Accelerator"

// listNPUs lists what computes neural networks. All that it looks at is names.
func listNPUs(r *reader) []Device {
	var found []Device
	add := func(class, name, node, label string) {
		d := r.device(NPU, name, node)
		d.Label = clean(label)
		r.describe(&d, class, name, "device")
		found = append(found, d)
	}
	for _, n := range npuNodes {
		for _, name := range r.matching(n.class, n.prefix) {
			add(n.class, name, n.node+name, r.link(n.class, name, "device", "driver"))
		}
	}
	for _, name := range r.matching("sys/class/drm", "renderD") {
		if driver := r.link("sys/class/drm", name, "device", "driver"); slices.Contains(npuDrivers, driver) {
			add("sys/class/drm", name, "dri/"+name, driver)
		}
	}
	if r.exists("sys/class/misc/rknpu") {
		add("sys/class/misc", "rknpu", "rknpu", "RKNPU")
	}
	for _, name := range r.names("dev") { // of a Jetson
		if strings.HasPrefix(name, "nvhost-") || name == "nvmap" {
			d := r.device(NPU, name, name)
			d.Label = "tegra"
			found = append(found, d)
		}
	}
	for _, d := range listUSB(r) {
		if slices.Contains(coral, d.Vendor+":"+d.Product) {
			d.Class, d.Label = NPU, coralLabel
			found = append(found, d)
		}
	}
	return found
}
