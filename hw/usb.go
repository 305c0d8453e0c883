package hw

import (
	"fmt"
	"strings"
)

// listUSB lists the devices of USB, hubs too (Documentation/ABI/stable/sysfs-bus-usb).
func listUSB(r *reader) []Device {
	const bus = "sys/bus/usb/devices"
	var found []Device
	for _, name := range r.names(bus) {
		if strings.Contains(name, ":") || !r.exists(bus, name, "idVendor") {
			continue // an interface
		}
		found = append(found, r.usbDevice(bus, name))
	}
	return found
}

func (r *reader) usbDevice(bus, name string) Device {
	var node string
	number, known := r.number(bus, name, "busnum")
	device, ok := r.number(bus, name, "devnum")
	if known && ok {
		node = fmt.Sprintf("bus/usb/%03d/%03d", number, device)
	}
	d := r.device(USB, name, node)
	d.Vendor, d.Product = identifier(r.text(bus, name, "idVendor")), identifier(r.text(bus, name, "idProduct"))
	d.Label = clean(r.text(bus, name, "manufacturer") + " " + r.text(bus, name, "product"))
	if serial := clean(r.text(bus, name, "serial")); serial != "" {
		d.Stable = d.Vendor + ":" + d.Product + ":" + serial
	}
	d.Type, d.Speed = clean(r.text(bus, name, "bDeviceClass")), clean(r.text(bus, name, "speed"))
	d.Bus, _, _ = strings.Cut(name, "-")
	return d
}
