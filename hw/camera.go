package hw

import (
	"slices"
	"strings"
)

// notCameras are how the names of video nodes begin that take no pictures: decoders,
// scalers, statistics. A Raspberry Pi has about fifteen.
var notCameras = []string{
	"bcm2835-codec", "bcm2835-isp", "rpivid", "rpi-hevc", "hevc", "pispbe", "unicam-embedded",
	"rkisp1_stats", "rkisp1_params", "rockchip,", "rkvdec", "hantro", "rockchip-", "cedrus", "sun8i", "stateful-", "stateless-",
}

// listCameras lists the video nodes that give pictures. It opens none: to open one
// powers some cameras up. What a node can do was noted by udev when it came
// (v4l_id, in /run/udev/data); where udev does not run, its name must do.
func listCameras(r *reader) []Device {
	const class = "sys/class/video4linux"
	byID := r.linksTo("dev/v4l/by-id")
	var found []Device
	for _, name := range r.matching(class, "video") {
		label := clean(r.text(class, name, "name"))
		if !takesPictures(label) {
			continue
		}
		notes, err := r.once("run/udev/data/c" + r.text(class, name, "dev"))
		if abilities, ok := note(notes, "ID_V4L_CAPABILITIES"); err == nil && ok {
			if !strings.Contains(abilities, ":capture:") {
				continue
			}
		} else if index, ok := r.number(class, name, "index"); ok && index > 0 && strings.Contains(r.resolve(class, name), "/usb") {
			continue // the second node of a camera at USB tells of its pictures
		}
		d := r.device(Camera, name, name)
		d.Label, d.Stable = label, byID[name]
		r.describe(&d, class, name, "device")
		d.Parts = r.imageSensors(class, r.resolve(class, name, "device"))
		found = append(found, d)
	}
	return found
}

// imageSensors lists what has an address of I2C among the parts of a camera: its
// sensor and its lens, "imx519 10-001a". The node itself has the receiver's name.
func (r *reader) imageSensors(class, device string) []string {
	var parts []string
	for _, sub := range r.matching(class, "v4l-subdev") {
		name := clean(r.text(class, sub, "name"))
		_, address, ok := strings.Cut(name, " ")
		if _, number, dash := strings.Cut(address, "-"); !ok || !dash || len(number) != 4 {
			continue
		}
		if device != "" && r.resolve(class, sub, "device") == device {
			parts = append(parts, name)
		}
	}
	return parts
}

// takesPictures says by the name of a node whether it may be a camera's.
func takesPictures(name string) bool {
	if rest, ok := strings.CutPrefix(name, "rp1-cfe-"); ok {
		return rest == "csi2_ch0" // the others are for the same camera's data
	}
	return !slices.ContainsFunc(notCameras, func(p string) bool { return strings.HasPrefix(name, p) })
}

// note finds a property in what udev noted of a device: "E:NAME=value".
func note(notes, name string) (value string, ok bool) {
	for line := range strings.Lines(notes) {
		if value, ok = strings.CutPrefix(line, "E:"+name+"="); ok {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}
