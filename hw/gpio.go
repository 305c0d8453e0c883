package hw

import (
	"bytes"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// listGPIO lists the chips of lines. Their numbers differ from board to board and
// from kernel to kernel; the label tells which is at the pins: "pinctrl-bcm2711" up
// to the Raspberry Pi 4, "pinctrl-rp1" on the Pi 5.
func listGPIO(r *reader) []Device {
	const bus = "sys/bus/gpio/devices"
	var found []Device
	for _, name := range r.matching(bus, "gpiochip") {
		d := r.device(GPIO, name, name)
		parent := filepath.Dir(r.resolve(bus, name))
		d.Bus, d.Label = clean(filepath.Base(parent)), r.chipLabel(bus, name, parent)
		found = append(found, d)
	}
	return found
}

// chipLabel finds a label without opening the chip, where the kernel tells it and the
// device has one chip only: the BCM2712 has two chips of lines at one device.
func (r *reader) chipLabel(bus, name, parent string) string {
	chips := r.matching(parent+"/gpio", "gpiochip") // numbered by their first line
	if len(chips) == 1 && len(r.matching(parent, "gpiochip")) == 1 {
		if label := clean(r.text(parent, "gpio", chips[0], "label")); label != "" {
			return label
		}
	}
	if !r.recorded() {
		if label := askChip("/dev/" + name); label != "" {
			return label
		}
	}
	// "brcm,bcm2711-gpio": not the label, but it tells the kind of chip.
	compatible, _, _ := strings.Cut(r.text(bus, name, "of_node", "compatible"), "\x00")
	return clean(compatible)
}

// chipInfo is GPIO_GET_CHIPINFO_IOCTL of linux/gpio.h, _IOR(0xB4, 1, 68 bytes): name
// and label of 32 bytes each, and the count of lines.
const chipInfo = 0x8044b401

// askChip asks a chip for its label. To open a chip claims and changes no line.
func askChip(path string) string {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer func() { _ = unix.Close(fd) }()
	var info [68]byte
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), chipInfo, uintptr(unsafe.Pointer(&info[0]))); errno != 0 {
		return ""
	}
	return chipInfoLabel(info[:])
}

// chipInfoLabel is the label in the answer of chipInfo.
func chipInfoLabel(info []byte) string {
	if len(info) != 68 {
		return ""
	}
	label, _, _ := bytes.Cut(info[32:64], []byte{0})
	return clean(string(label))
}
