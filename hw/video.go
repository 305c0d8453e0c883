package hw

import (
	"slices"
	"strings"
)

// codecs are how the names of video nodes begin that code or decode.
var codecs = []string{"bcm2835-codec", "rpivid", "rpi-hevc", "rkvdec", "hantro", "rockchip,", "rockchip-vpu", "cedrus", "stateful-", "stateless-"}

// listVideo lists the video nodes that code or decode.
func listVideo(r *reader) []Device {
	const class = "sys/class/video4linux"
	var found []Device
	for _, name := range r.matching(class, "video") {
		label := clean(r.text(class, name, "name"))
		if !slices.ContainsFunc(codecs, func(p string) bool { return strings.HasPrefix(label, p) }) {
			continue
		}
		d := r.device(Video, name, name)
		d.Label = label
		r.describe(&d, class, name, "device")
		found = append(found, d)
	}
	return found
}
