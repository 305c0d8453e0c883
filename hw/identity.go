package hw

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Identity is what a board is. It does not change while it runs; "" and 0 are unknown.
type Identity struct {
	Model      string    `json:"model"`                // "Raspberry Pi 4 Model B Rev 1.1"
	Compatible []string  `json:"compatible,omitempty"` // of the device tree, the most special first
	Serial     string    `json:"serial,omitempty"`
	SoC        string    `json:"soc,omitempty"`      // "BCM2711"
	Revision   *Revision `json:"revision,omitempty"` // of a Raspberry Pi
	Processor  Processor `json:"processor"`
	Kernel     string    `json:"kernel"`   // the machine that uname(2) names: "aarch64"
	Userland   string    `json:"userland"` // Go's name of what its programs are built for: "arm64"; "arm" below "aarch64" is common
	PageSize   int       `json:"pageSize"` // bytes; 16384 with the usual kernel of a Pi 5
	BootID     string    `json:"bootID"`   // another with each boot (random(4))
	CPUs       int       `json:"cpus"`
}

type identity struct {
	*reader
	out Identity
}

func newIdentity(r *reader) sensor { return &identity{reader: r} }

const deviceTree = "proc/device-tree"

func (i *identity) scan() {
	cpus := ParseCPUInfo([]byte(i.text("proc/cpuinfo")))
	out := Identity{
		Model: i.text(deviceTree, "model"), Serial: i.text(deviceTree, "serial-number"),
		Processor: cpus.Processor, Kernel: i.machine(cpus), PageSize: os.Getpagesize(),
		BootID: i.text("proc/sys/kernel/random/boot_id"), CPUs: cpus.Count,
	}
	if out.Model == "" {
		out.Model = cpus.Model
	}
	if out.Model == "" { // a PC's
		out.Model = strings.TrimSpace(i.text("sys/class/dmi/id/sys_vendor") + " " + i.text("sys/class/dmi/id/product_name"))
	}
	if out.Serial == "" {
		out.Serial = cpus.Serial
	}
	for _, name := range bytes.Split([]byte(i.text(deviceTree, "compatible")), []byte{0}) {
		if len(name) > 0 {
			out.Compatible = append(out.Compatible, printable(name))
		}
	}
	out.Model, out.Serial = printable([]byte(out.Model)), printable([]byte(out.Serial))
	code, known := cpus.Revision, cpus.HasRevision
	if data := i.raw(deviceTree, "system/linux,revision"); len(data) == 4 {
		code, known = uint32(data[0])<<24|uint32(data[1])<<16|uint32(data[2])<<8|uint32(data[3]), true
	}
	if known {
		r := ParseRevision(code)
		out.Revision, out.SoC = &r, r.SoC
	}
	if out.SoC == "" && len(out.Compatible) > 0 {
		_, out.SoC, _ = strings.Cut(out.Compatible[len(out.Compatible)-1], ",")
		out.SoC = strings.ToUpper(out.SoC)
	}
	out.Userland = i.userland()
	i.out = out
}

func (i *identity) sample() {}

func (i *identity) put(s *Snapshot) { s.Identity = i.out }

// machine is the kernel's. Of another root it is what its cpuinfo comes to.
func (i *identity) machine(cpus CPUInfo) string {
	if i.recorded() {
		switch {
		case cpus.Arch == "arm64":
			return "aarch64"
		case cpus.Arch == "arm":
			return "arm" + cpus.Variant + "l"
		case cpus.Arch == "amd64":
			return "x86_64"
		}
		return cpus.Arch
	}
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Machine[:])
}

// machines are the machines of ELF headers (elf(5)), as images name them.
var machines = map[uint16]string{3: "386", 40: "arm", 62: "amd64", 183: "arm64", 243: "riscv64"}

// userland is what programs here are built for, by the ELF header of the shell.
func (i *identity) userland() string {
	header := i.raw("bin/sh")
	if len(header) < 20 || string(header[:4]) != "\x7fELF" {
		return ""
	}
	return machines[uint16(header[18])|uint16(header[19])<<8] // of a machine that counts from the small end
}

// raw reads the beginning of a file as it is: numbers of the device tree may end in NULs.
func (i *identity) raw(path ...string) []byte {
	f, err := os.Open(filepath.Join(i.root, filepath.Join(path...)))
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	data := make([]byte, 64)
	n, _ := io.ReadFull(f, data) // shorter is all there is
	return data[:n]
}

// printable leaves of a text what can be shown: bytes of devices can be anything.
func printable(text []byte) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(strings.TrimSpace(string(trim(text))), "\ufffd"))
}

// Revision is the revision code of a Raspberry Pi, decoded as its documentation says.
// Only the fields are to be matched, never a whole code: new ones come.
type Revision struct {
	Code     uint32 `json:"code"`
	Type     string `json:"type"`     // "4B"; "0x1f" of one that is not known here
	SoC      string `json:"soc"`      // "BCM2711"
	MemoryMB int    `json:"memoryMB"` // soldered on; 0: not told
	Maker    string `json:"maker"`
	Number   int    `json:"number"` // of the board's revision: 1 is "Rev 1.1"
}

var (
	piTypes = map[uint32]string{
		0x00: "A", 0x01: "B", 0x02: "A+", 0x03: "B+", 0x04: "2B", 0x05: "Alpha", 0x06: "CM1", 0x08: "3B", 0x09: "Zero",
		0x0a: "CM3", 0x0c: "Zero W", 0x0d: "3B+", 0x0e: "3A+", 0x10: "CM3+", 0x11: "4B", 0x12: "Zero 2 W",
		0x13: "400", 0x14: "CM4", 0x15: "CM4S", 0x17: "5", 0x18: "CM5", 0x19: "500", 0x1a: "CM5 Lite", 0x1b: "CM0",
	}
	piSoCs   = []string{"BCM2835", "BCM2836", "BCM2837", "BCM2711", "BCM2712"}
	piMakers = []string{"Sony UK", "Egoman", "Embest", "Sony Japan", "Embest", "Stadium"}
	// Of the codes before the Raspberry Pi 2: type and memory.
	oldBoards = map[uint32]Revision{
		0x02: {Type: "B", MemoryMB: 256}, 0x03: {Type: "B", MemoryMB: 256}, 0x04: {Type: "B", MemoryMB: 256},
		0x05: {Type: "B", MemoryMB: 256}, 0x06: {Type: "B", MemoryMB: 256}, 0x07: {Type: "A", MemoryMB: 256},
		0x08: {Type: "A", MemoryMB: 256}, 0x09: {Type: "A", MemoryMB: 256}, 0x0d: {Type: "B", MemoryMB: 512},
		0x0e: {Type: "B", MemoryMB: 512}, 0x0f: {Type: "B", MemoryMB: 512}, 0x10: {Type: "B+", MemoryMB: 512},
		0x11: {Type: "CM1", MemoryMB: 512}, 0x12: {Type: "A+", MemoryMB: 256}, 0x13: {Type: "B+", MemoryMB: 512},
		0x14: {Type: "CM1", MemoryMB: 512}, 0x15: {Type: "A+", MemoryMB: 256},
	}
)

// ParseRevision decodes a code: bit 23 says that it is of the new form.
func ParseRevision(code uint32) Revision {
	if code&(1<<23) == 0 {
		r := oldBoards[code&0xff]
		if r.Type == "" {
			r.Type = fmt.Sprintf("%#x", code)
		}
		r.Code, r.SoC = code, piSoCs[0]
		return r
	}
	r := Revision{Code: code, Number: int(code & 0xf), Type: piTypes[code>>4&0xff]}
	if r.Type == "" {
		r.Type = fmt.Sprintf("%#x", code>>4&0xff)
	}
	if soc := int(code >> 12 & 0xf); soc < len(piSoCs) {
		r.SoC = piSoCs[soc]
	}
	if maker := int(code >> 16 & 0xf); maker < len(piMakers) {
		r.Maker = piMakers[maker]
	}
	if size := code >> 20 & 7; size < 7 {
		r.MemoryMB = 256 << size
	}
	return r
}
