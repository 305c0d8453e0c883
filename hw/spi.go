package hw

import "strings"

// listSPI lists the selects of the buses that programs may use.
func listSPI(r *reader) []Device {
	const class = "sys/class/spidev"
	var found []Device
	for _, name := range r.names(class) {
		d := r.device(SPI, name, name)
		d.Label = clean(strings.TrimPrefix(r.text(class, name, "device", "modalias"), "spi:"))
		r.describe(&d, class, name, "device")
		found = append(found, d)
	}
	return found
}
