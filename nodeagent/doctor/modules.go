package doctor

import (
	"bufio"
	"compress/gzip"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Modules is what the node's network needs of the kernel, which loads it when it is
// asked for.
type Modules struct {
	Missing []string
	Gone    bool // the running kernel's own modules are not on the disk, as after an upgrade
	Untold  bool
	Release string
	Tun     string // what is wrong with /dev/net/tun; "" if nothing, or it is not known
	TunHere bool
}

// needed are the modules, and the settings that build them.
var needed = map[string]string{
	"nf_tables": "CONFIG_NF_TABLES", "nft_chain_nat": "CONFIG_NFT_NAT", "nft_masq": "CONFIG_NFT_MASQ",
	"bridge": "CONFIG_BRIDGE", "veth": "CONFIG_VETH", "tun": "CONFIG_TUN",
}

func (p Place) lookModules() Modules {
	m := Modules{Release: p.line("proc/sys/kernel/osrelease")}
	m.Tun, m.TunHere = p.lookTun()
	var listed string
	dir := p.path("lib/modules", m.Release)
	for _, name := range []string{"modules.builtin", "modules.dep"} {
		data, _ := os.ReadFile(dir + "/" + name)
		listed += string(data)
	}
	config := p.kernelConfig()
	loaded, err := os.ReadFile(p.path("proc/modules"))
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		_, here := os.Stat(p.path("sys/module", name))
		if here == nil || config[needed[name]] == "y" || strings.Contains("\n"+string(loaded), "\n"+name+" ") || strings.Contains(listed, "/"+name+".ko") {
			continue
		}
		m.Missing = append(m.Missing, name)
	}
	if m.Missing == nil || listed != "" {
		return m
	}
	switch { // there is no list of modules
	case len(loaded) > 0 && err == nil:
		m.Gone = true
	case config == nil:
		m.Untold = true
	}
	return m
}

// kernelConfig is what the kernel was built with, where it says so.
func (p Place) kernelConfig() map[string]string {
	f, err := os.Open(p.path("proc/config.gz"))
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	text, err := gzip.NewReader(f)
	if err != nil {
		return nil
	}
	config := map[string]string{}
	for lines := bufio.NewScanner(text); lines.Scan(); {
		if name, value, found := strings.Cut(lines.Text(), "="); found && strings.HasPrefix(name, "CONFIG_") {
			config[name] = value
		}
	}
	return config
}

func (p Place) lookTun() (wrong string, here bool) {
	path := p.path("dev/net/tun")
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "is not there", false
	case p.Self && unix.Access(path, unix.R_OK|unix.W_OK) != nil, !p.Self && info.Mode().Perm()&6 != 6:
		return "may not be opened by users", true
	}
	return "", true
}

func checkModules(f Facts) (all []Finding) {
	const check, tun = "KernelModulesMissing", "TunUnusable"
	m := f.Modules
	switch {
	case m.Gone:
		all = append(all, fatal(check, "the modules of the running kernel (%s) are not on the disk, as after an upgrade, and the node's network needs: %s", m.Release, strings.Join(m.Missing, ", ")).by("sudo reboot"))
	case m.Untold:
		all = append(all, unknown(check, "whether the kernel has what the node's network needs: there is no /lib/modules/%s", m.Release))
	case m.Missing != nil:
		all = append(all, fatal(check, "the kernel has no modules that the node's network needs: %s", strings.Join(m.Missing, ", ")).by("sudo apt install linux-modules-extra-$(uname -r)   # Ubuntu's; elsewhere another kernel is needed"))
	default:
		all = append(all, fine(check, "the kernel has what the node's network needs"))
	}
	switch {
	case m.Tun == "":
		all = append(all, fine(tun, "/dev/net/tun is open to users"))
	case !m.TunHere:
		all = append(all, fatal(tun, "/dev/net/tun %s: pods have no way out of the node", m.Tun).by("echo tun | sudo tee /etc/modules-load.d/bramble.conf && sudo modprobe tun"))
	default:
		all = append(all, fatal(tun, "/dev/net/tun %s: pods have no way out of the node", m.Tun).
			by(`echo 'KERNEL=="tun", MODE="0666"' | sudo tee /etc/udev/rules.d/60-bramble-tun.rules && sudo chmod 666 /dev/net/tun`))
	}
	return all
}
