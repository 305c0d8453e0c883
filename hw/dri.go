package hw

import "slices"

// listDRI lists the nodes of graphics: "card0" shows pictures, "renderD128" computes
// them. Those that compute neural networks are an NPU.
func listDRI(r *reader) []Device {
	const class = "sys/class/drm"
	var found []Device
	for _, prefix := range []string{"card", "renderD"} { // not "card0-HDMI-A-1", which is a plug
		for _, name := range r.matching(class, prefix) {
			driver := r.link(class, name, "device", "driver")
			if slices.Contains(npuDrivers, driver) {
				continue
			}
			d := r.device(DRI, name, "dri/"+name)
			d.Label = clean(driver)
			r.describe(&d, class, name, "device")
			found = append(found, d)
		}
	}
	return found
}
