package hw

import (
	"cmp"
	"strings"
)

// listSerial lists the serial ports that have hardware.
func listSerial(r *reader) []Device {
	const class = "sys/class/tty"
	byID, byPath := r.linksTo("dev/serial/by-id"), r.linksTo("dev/serial/by-path")
	links := r.linksTo("dev") // serial0 and serial1 of a Raspberry Pi, and what an owner's rules of udev name
	var found []Device
	for _, name := range r.names(class) {
		if !r.exists(class, name, "device") || !r.isPort(class, name) {
			continue // a console, a terminal of a program
		}
		d := r.device(Serial, name, name)
		r.describe(&d, class, name, "device")
		// Two adapters without serial numbers have one name by their identity.
		d.Stable = cmp.Or(byID[name], byPath[name], links[name])
		found = append(found, d)
	}
	return found
}

// isPort says whether there is hardware: the kernel has ttyS0 to ttyS3 on every board,
// of type 0 (PORT_UNKNOWN) if nothing is there. Of older kernels only root may
// read it; such ports hang at a device that is no hardware.
func (r *reader) isPort(class, name string) bool {
	if prefix, _ := splitNumber(name); prefix != "ttyS" {
		return true
	}
	if kind, ok := r.number(class, name, "type"); ok {
		return kind != 0
	}
	return !strings.Contains(r.resolve(class, name), "platform/serial8250/")
}
