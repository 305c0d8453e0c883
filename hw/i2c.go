package hw

import (
	"fmt"
	"strings"
)

// listI2C lists the buses, and who has a driver at which address. It asks nothing on
// a bus: to be asked upsets some devices.
func listI2C(r *reader) []Device {
	const bus = "sys/bus/i2c/devices"
	var found []Device
	all := r.names(bus)
	for _, name := range r.matching(bus, "i2c-") {
		d := r.device(I2C, name, name)
		d.Label = clean(r.text(bus, name, "name"))
		d.Bus = r.above(bus, name)
		_, n := splitNumber(name)
		for _, part := range all {
			address, ok := strings.CutPrefix(part, fmt.Sprintf("%d-", n))
			if ok && len(address) == 4 {
				d.Parts = append(d.Parts, clean(address+" "+r.text(bus, part, "name")))
			}
		}
		found = append(found, d)
	}
	return found
}
