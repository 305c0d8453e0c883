package wayout

import (
	"net/netip"
	"os/exec"
	"strconv"
)

// linkName is the device that both programs make in the node's namespace.
const linkName = "tap0"

// program is one of the programs that can be the way out.
type program struct {
	name string
	args func(c Config) []string
}

// programs in order of preference: pasta carries twice as much.
func programs() []program {
	return []program{{"pasta", pastaArgs}, {"slirp4netns", slirpArgs}}
}

// candidates are the installed programs that c allows, as paths by name.
func candidates(c Config) []program {
	var found []program
	for _, p := range programs() {
		if c.Program != "" && c.Program != p.name {
			continue
		}
		if _, err := exec.LookPath(p.name); err == nil {
			found = append(found, p)
		}
	}
	return found
}

// pastaArgs gives pasta an address of the link's own instead of the host's, so
// that the host itself can be reached by its address; it forwards no port in
// either direction and does not lead to the host's loopback.
func pastaArgs(c Config) []string {
	return []string{
		"--foreground", "--stderr", "--netns", c.Path, "--no-netns-quit", "--config-net", "--ipv4-only",
		"--ns-ifname", linkName, "--mtu", strconv.Itoa(c.MTU),
		"--address", nth(c.Link, 100).String(), "--netmask", strconv.Itoa(c.Link.Bits()), "--gateway", nth(c.Link, 2).String(),
		"--no-map-gw", "-t", "none", "-u", "none", "-T", "none", "-U", "none",
	}
}

// slirpArgs does the same with slirp4netns, whose own address is .100 of the
// link and whose gateway is .2.
func slirpArgs(c Config) []string {
	return []string{
		"--configure", "--netns-type=path", "--mtu", strconv.Itoa(c.MTU), "--cidr", c.Link.String(),
		"--disable-host-loopback", "--disable-dns", "--enable-sandbox", "--enable-seccomp", c.Path, linkName,
	}
}

// nth is address n of a /24.
func nth(p netip.Prefix, n byte) netip.Addr {
	b := p.Addr().As4()
	b[3] = n
	return netip.AddrFrom4(b)
}
