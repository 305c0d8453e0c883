package doctor

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// sysctl is the line that makes a setting of the kernel, "name=value", last.
func sysctl(setting string) string {
	name, _, _ := strings.Cut(setting, "=")
	file := strings.ReplaceAll(name[strings.LastIndexByte(name, '.')+1:], "_", "-")
	return "echo " + setting + " | sudo tee /etc/sysctl.d/60-bramble-" + file + ".conf && sudo sysctl --system"
}

// checkPressure says whether the kernel tells how long is waited for memory.
func checkPressure(f Facts) []Finding {
	const check = "PressureOff"
	_, err := f.Board.Pressure.Memory.Get()
	switch {
	case err == nil:
		return []Finding{fine(check, "the kernel tells how long is waited (PSI)")}
	case f.Recorded && f.Boot.Words == nil:
		return nil // not recorded
	case len(f.Boot.lacks("psi=1")) == 0:
		return []Finding{note(check, "the kernel does not tell how long is waited for memory (PSI), though its command line asks for it: it was built without CONFIG_PSI")}
	}
	return []Finding{note(check, "the kernel does not tell how long is waited for memory (PSI): the scheduler judges this node by less").by("%s", f.Boot.add("psi=1"))}
}

// checkBuild looks at what images have to fit.
func checkBuild(f Facts) (all []Finding) {
	id := f.Board.Identity
	const pages, programs = "LargePages", "Userland32Bit"
	switch {
	case id.PageSize <= 4096 || f.Recorded: // the size of pages is this machine's
	case id.SoC == "BCM2712":
		config := "/boot/firmware/config.txt"
		if f.Boot.File == "/boot/cmdline.txt" {
			config = "/boot/config.txt"
		}
		all = append(all, note(pages, "the kernel has pages of %d KiB: images whose programs count on 4 KiB (some jemalloc) end at once", id.PageSize/1024).
			by(`printf '[all]\nkernel=kernel8.img\n' | sudo tee -a %s && sudo reboot`, config))
	default:
		all = append(all, note(pages, "the kernel has pages of %d KiB: images whose programs count on 4 KiB (some jemalloc) end at once", id.PageSize/1024))
	}
	if id.Kernel == "aarch64" && id.Userland == "arm" {
		all = append(all, note(programs, "the programs here are of 32 bits below a kernel of 64: the node is one for images of arm, and not of arm64; a system image of 64 bits would change that"))
	}
	return all
}

func (p Place) lookSwaps() (names []string) {
	data, _ := os.ReadFile(p.path("proc/swaps"))
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) == 5 && fields[0] != "Filename" {
			names = append(names, fields[0])
		}
	}
	return names
}

func checkSwap(f Facts) []Finding {
	const check = "SwapOnDisk"
	if f.Recorded {
		return nil
	}
	var disks []string
	for _, name := range f.Swaps {
		if !strings.HasPrefix(filepath.Base(name), "zram") {
			disks = append(disks, name)
		}
	}
	switch {
	case disks != nil:
		found := note(check, "memory is swapped to a disk (%s): that is slow, and wears a card", strings.Join(disks, ", "))
		if f.Init.Systemd && strings.Join(disks, "") == "/var/swap" {
			return []Finding{found.by("sudo systemctl disable --now dphys-swapfile")}
		}
		return []Finding{found.by("sudo swapoff %s   # and take it out of /etc/fstab", strings.Join(disks, " "))}
	case f.Swaps != nil:
		return []Finding{fine(check, "memory is swapped to memory alone, compressed (zram)")}
	}
	return []Finding{fine(check, "memory is not swapped")}
}

func checkPorts(f Facts) []Finding {
	const check = "LowPortsClosed"
	switch first, err := strconv.Atoi(f.FirstPort); {
	case err != nil:
		return []Finding{unknown(check, "from which port on users may listen: the kernel has no net.ipv4.ip_unprivileged_port_start")}
	case first > 1:
		return []Finding{note(check, "hostPorts of pods below %d cannot be had (net.ipv4.ip_unprivileged_port_start)", first).by("%s", sysctl("net.ipv4.ip_unprivileged_port_start=80"))}
	}
	return []Finding{fine(check, "pods may have any hostPort")}
}
