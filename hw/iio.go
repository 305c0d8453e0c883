package hw

import (
	"cmp"
)

// listIIO lists converters and sensors (Documentation/ABI/testing/sysfs-bus-iio).
func listIIO(r *reader) []Device {
	const bus = "sys/bus/iio/devices"
	var found []Device
	for _, name := range r.matching(bus, "iio:device") {
		d := r.device(IIO, name, name)
		d.Label = cmp.Or(clean(r.text(bus, name, "label")), clean(r.text(bus, name, "name")))
		d.Bus = r.above(bus, name)
		found = append(found, d)
	}
	return found
}
