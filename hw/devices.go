package hw

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Class is what a Device is for.
type Class string

// The classes of devices.
const (
	GPIO      Class = "gpio"
	I2C       Class = "i2c"
	SPI       Class = "spi"
	Serial    Class = "serial"
	USB       Class = "usb"
	Camera    Class = "camera"
	Audio     Class = "audio"
	IIO       Class = "iio" // converters, and sensors of motion, light and air
	OneWire   Class = "onewire"
	NPU       Class = "npu" // what computes neural networks
	Bluetooth Class = "bluetooth"
	Video     Class = "video" // what codes and decodes pictures
	DRI       Class = "dri"   // graphics
)

// Device is something that a pod could be given. Its texts are valid UTF-8 without
// control characters, whatever the device says.
type Device struct {
	Class   Class         `json:"class"`
	Name    string        `json:"name"`              // the kernel's, which may be another after a boot: "gpiochip0", "1-1.2"
	Path    string        `json:"path,omitempty"`    // of its node: "/dev/gpiochip0"
	More    []string      `json:"more,omitempty"`    // other nodes that belong to it: "/dev/snd/pcmC0D0p"
	Number  string        `json:"number,omitempty"`  // of its node, major and minor: "254:0"; "" of what is no node
	Label   string        `json:"label,omitempty"`   // what it says that it is: "pinctrl-rp1"
	Stable  string        `json:"stable,omitempty"`  // what names it after a boot or at another port too
	Bus     string        `json:"bus,omitempty"`     // what it hangs at: "3f804000.i2c", "1-1.2:1.0"
	Vendor  string        `json:"vendor,omitempty"`  // of USB and PCI, four digits in base 16
	Product string        `json:"product,omitempty"` // likewise
	Type    string        `json:"type,omitempty"`    // of USB: bDeviceClass, "09" for a hub, "00" if its interfaces tell
	Speed   string        `json:"speed,omitempty"`   // of USB, in Mbit/s: "1.5", "480"
	Parts   []string      `json:"parts,omitempty"`   // of a bus of I2C, "0068 ds1307"; of a camera, "imx519 10-001a"
	Access  Reading[bool] `json:"access"`            // whether a container of this user may open its node to read and write
}

// IsHub says that a device of USB is one to plug others in.
func (d Device) IsHub() bool { return d.Class == USB && d.Type == "09" }

// Kinds are what people call a device: its class, and of what computes neural networks
// who made it.
func (d Device) Kinds() []string {
	kinds := []string{string(d.Class)}
	if d.Class != NPU {
		return kinds
	}
	switch prefix, _ := splitNumber(d.Name); {
	case prefix == "hailo":
		return append(kinds, "hailo")
	case prefix == "apex_", d.Label == coralLabel:
		return append(kinds, "coral")
	case slices.Contains(npuDrivers, d.Label):
		return append(kinds, "rknpu")
	}
	return kinds
}

// devices lists the devices of a class when the board is scanned.
type devices struct {
	*reader
	class Class
	list  func(*reader) []Device
	found []Device
}

func (d *devices) scan()           { d.found = d.list(d.reader) }
func (d *devices) sample()         {}
func (d *devices) put(s *Snapshot) { s.Devices = replace(s.Devices, d.class, d.found) }

// deviceSources returns what lists devices, each class by itself: one that hangs
// hides no other.
func (b *Board) deviceSources() []*source {
	var sources []*source
	const patience = 2 * time.Second // many small files, and perhaps while the board boots
	for _, l := range []devices{
		{class: GPIO, list: listGPIO},
		{class: I2C, list: listI2C},
		{class: SPI, list: listSPI},
		{class: Serial, list: listSerial},
		{class: USB, list: listUSB},
		{class: Camera, list: listCameras},
		{class: Audio, list: listAudio},
		{class: IIO, list: listIIO},
		{class: NPU, list: listNPUs},
		{class: Bluetooth, list: listBluetooth},
		{class: Video, list: listVideo},
		{class: DRI, list: listDRI},
	} {
		sources = append(sources, b.newSource(string(l.class), Once, func(r *reader) sensor {
			l.reader = r
			return &l
		}).within(patience))
	}
	return sources
}

// replace puts devices in the place of all others of their class.
func replace(all []Device, class Class, found []Device) []Device {
	all = slices.DeleteFunc(all, func(d Device) bool { return d.Class == class })
	all = append(all, found...)
	slices.SortStableFunc(all, func(a, b Device) int { return cmp.Compare(a.Class, b.Class) })
	return all
}

// device is a device whose node, if it has one, is in /dev.
func (r *reader) device(class Class, name, node string) Device {
	d := Device{Class: class, Name: clean(name), Access: Reading[bool]{Err: ErrAbsent}}
	if node != "" && r.exists("dev", node) {
		d.Path = "/dev/" + node
		d.Number = r.nodeNumber("dev/" + node)
		d.Access = r.access("dev/" + node)
	}
	return d
}

// resolve returns where a path is at the end of its symbolic links, below the root;
// "" if nowhere.
func (r *reader) resolve(path ...string) string {
	to, err := filepath.EvalSymlinks(filepath.Join(r.root, filepath.Join(path...)))
	if err != nil {
		return ""
	}
	root, err := filepath.EvalSymlinks(r.root)
	if err != nil {
		return ""
	}
	below, err := filepath.Rel(root, to)
	if err != nil || !filepath.IsLocal(below) {
		return ""
	}
	return below
}

// above is the name of what a device hangs at; "" if that cannot be told.
func (r *reader) above(path ...string) string {
	at := r.resolve(path...)
	if at == "" {
		return ""
	}
	return clean(filepath.Base(filepath.Dir(at)))
}

// describe notes what a device hangs at, and of USB and PCI who made it.
func (r *reader) describe(d *Device, path ...string) {
	at := r.resolve(path...)
	if at == "" {
		return
	}
	d.Bus = clean(filepath.Base(at))
	for ; strings.HasPrefix(at, "sys/devices/"); at = filepath.Dir(at) {
		if r.exists(at, "idVendor") {
			d.Vendor, d.Product = identifier(r.text(at, "idVendor")), identifier(r.text(at, "idProduct"))
			d.Label = cmp.Or(d.Label, clean(r.text(at, "product")))
			return
		}
		if r.link(at, "subsystem") == "pci" {
			d.Vendor, d.Product = identifier(r.text(at, "vendor")), identifier(r.text(at, "device"))
			return
		}
	}
}

// linksTo returns what the symbolic links in a directory of /dev name, by the name of
// the node that they lead to.
func (r *reader) linksTo(dir string) map[string]string {
	links := map[string]string{}
	for _, name := range r.names(dir) {
		if to := r.link(dir, name); to != "" && links[to] == "" {
			links[to] = clean("/" + dir + "/" + name)
		}
	}
	return links
}

// matching lists what in a directory is named so and numbered.
func (r *reader) matching(dir, prefix string) []string {
	return slices.DeleteFunc(r.names(dir), func(name string) bool {
		p, n := splitNumber(name)
		return p != prefix || n < 0
	})
}
