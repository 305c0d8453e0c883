package hw

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// Processor is what the cores can do.
type Processor struct {
	Arch     string   `json:"arch"`               // as images name it: "arm64", "arm", "amd64"
	Variant  string   `json:"variant,omitempty"`  // "v6", "v7", "v8"; "" of others
	Cores    []Core   `json:"cores,omitempty"`    // by kind: big and little ones differ
	Features []string `json:"features,omitempty"` // that all cores have, as the kernel calls them
}

// Core is a kind of core and how many there are.
type Core struct {
	Name  string `json:"name"` // "Cortex-A72"; "0x41/0xd99" of one that is not known here
	Count int    `json:"count"`
}

// Has says whether all cores have a feature: "aes", "asimd", "neon".
func (p Processor) Has(feature string) bool { return slices.Contains(p.Features, feature) }

// CPUInfo is what /proc/cpuinfo says.
type CPUInfo struct {
	Processor
	Count         int    // of cores
	Model, Serial string // of the board, where the kernel tells them here
	Revision      uint32 // of a Raspberry Pi
	HasRevision   bool
}

// armCores are names of cores by their maker and number (MIDR), of boards that we
// have heard of.
var armCores = map[string]string{
	"0x41/0xb76": "ARM1176", "0x41/0xc05": "Cortex-A5", "0x41/0xc07": "Cortex-A7", "0x41/0xc08": "Cortex-A8",
	"0x41/0xc09": "Cortex-A9", "0x41/0xc0e": "Cortex-A17", "0x41/0xc0f": "Cortex-A15", "0x41/0xd03": "Cortex-A53",
	"0x41/0xd04": "Cortex-A35", "0x41/0xd05": "Cortex-A55", "0x41/0xd07": "Cortex-A57", "0x41/0xd08": "Cortex-A72",
	"0x41/0xd09": "Cortex-A73", "0x41/0xd0a": "Cortex-A75", "0x41/0xd0b": "Cortex-A76", "0x41/0xd0c": "Neoverse-N1",
	"0x41/0xd42": "Cortex-A78AE", "0x41/0xd41": "Cortex-A78", "0x4e/0x004": "Carmel",
}

// cpuLines are the lines of one core that say what it is.
type cpuLines struct{ maker, part, arch, model, features string }

// ParseCPUInfo reads /proc/cpuinfo of any architecture. The line "Hardware" is not
// used: it says BCM2835 on every Raspberry Pi; nor are clocks, which are not there.
func ParseCPUInfo(data []byte) CPUInfo {
	var info CPUInfo
	var cores []cpuLines
	var all cpuLines // older kernels write lines once for all cores, before or after them
	for len(data) > 0 {
		var line []byte
		line, data = nextLine(data)
		name, value, _ := bytes.Cut(line, []byte{':'})
		text := printable(value)
		switch key := string(trim(name)); key {
		case "processor":
			cores = append(cores, cpuLines{})
		case "Revision":
			if code, err := parseHex(value); err == nil && code <= 1<<32-1 {
				info.Revision, info.HasRevision = uint32(code), true
			}
		case "Serial":
			info.Serial = text
		case "Model":
			info.Model = text
		default:
			all.set(key, text)
			if len(cores) > 0 {
				cores[len(cores)-1].set(key, text)
			}
		}
	}
	if len(cores) == 0 && all != (cpuLines{}) { // the only core had no number
		cores = []cpuLines{{}}
	}
	for _, c := range cores {
		info.add(c, all)
	}
	return info
}

func (c *cpuLines) set(key, text string) {
	switch key {
	case "CPU implementer":
		c.maker = text
	case "CPU part":
		c.part = text
	case "CPU architecture", "isa":
		c.arch = text
	case "model name", "Processor":
		c.model = text
	case "Features", "flags":
		c.features = text
	}
}

// add counts a core in. What it does not say of itself is said of all.
func (i *CPUInfo) add(c, all cpuLines) {
	c = cpuLines{
		maker: cmp.Or(c.maker, all.maker), part: cmp.Or(c.part, all.part), arch: cmp.Or(c.arch, all.arch),
		model: cmp.Or(c.model, all.model), features: cmp.Or(c.features, all.features),
	}
	features := strings.Fields(c.features)
	arch, variant := architecture(c, features)
	if i.Count == 0 || variant < i.Variant {
		i.Arch, i.Variant = arch, variant
	}
	if i.Count == 0 {
		i.Features = features
	} else {
		i.Features = slices.DeleteFunc(i.Features, func(f string) bool { return !slices.Contains(features, f) })
	}
	i.Count++
	name := c.model
	if c.part != "" {
		key := c.maker + "/" + c.part
		name = cmp.Or(armCores[key], key)
	}
	at := slices.IndexFunc(i.Cores, func(k Core) bool { return k.Name == name })
	if at < 0 {
		at = len(i.Cores)
		i.Cores = append(i.Cores, Core{Name: name})
	}
	i.Cores[at].Count++
}

// architecture says what images a core runs. Its own line says 7 of an ARM1176, which
// is a v6, and 8 of a core of 64 bits below a kernel of 32: that runs v7, and its
// features are those of 32 bits.
func architecture(c cpuLines, features []string) (arch, variant string) {
	has := func(f string) bool { return slices.Contains(features, f) }
	switch {
	case strings.HasPrefix(c.arch, "rv64"):
		return "riscv64", ""
	case has("lm"): // long mode
		return "amd64", ""
	case has("fpu"): // of x86 alone
		return "386", ""
	case c.part == "0xb76" || strings.Contains(c.model, "(v6l)"):
		return "arm", "v6"
	case has("fp") || has("asimd"):
		return "arm64", "v8"
	case c.arch != "" || strings.HasPrefix(c.model, "ARM"):
		return "arm", "v7"
	}
	return "", ""
}
