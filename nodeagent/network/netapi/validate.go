package netapi

import (
	"fmt"
	"net/netip"
	"path/filepath"
)

const (
	// DefaultMTU is as large as the ways out take: the pods' MTU decides
	// their throughput.
	DefaultMTU = 65520
	minMTU     = 1280 // IPv6 forbids less
	// NodeName is the file name of the node's own namespace, and so no pod's UID.
	NodeName  = "node"
	maxUID    = 64
	socketDir = "bramble"
)

// DefaultLinkCIDR lies in the range for benchmarks (RFC 2544), which no
// network should use.
func DefaultLinkCIDR() netip.Prefix { return netip.MustParsePrefix("198.18.2.0/24") }

// SocketPath is where the network process of the user with this
// XDG_RUNTIME_DIR listens.
func SocketPath(runtimeDir string) string {
	return filepath.Join(runtimeDir, socketDir, "network.sock")
}

// WithDefaults returns n with its zero settings filled in.
func (n Node) WithDefaults() Node {
	if n.MTU == 0 {
		n.MTU = DefaultMTU
	}
	if !n.LinkCIDR.IsValid() {
		n.LinkCIDR = DefaultLinkCIDR()
	}
	return n
}

// Gateway is the bridge's address: the first of PodCIDR.
func (n Node) Gateway() netip.Addr { return n.PodCIDR.Masked().Addr().Next() }

// Validate says what is wrong with n, after WithDefaults, or nil.
func (n Node) Validate() error {
	for _, r := range []struct {
		name   string
		prefix netip.Prefix
		most   int // bits
	}{{"podCIDR", n.PodCIDR, 30}, {"clusterCIDR", n.ClusterCIDR, 30}, {"serviceCIDR", n.ServiceCIDR, 30}, {"linkCIDR", n.LinkCIDR, 24}} {
		switch {
		case !r.prefix.IsValid():
			return fmt.Errorf("%s is missing", r.name)
		case !r.prefix.Addr().Is4():
			return fmt.Errorf("%s %s is not an IPv4 range: only IPv4 is supported so far", r.name, r.prefix)
		case r.prefix != r.prefix.Masked():
			return fmt.Errorf("%s %s has bits set after its length: write %s", r.name, r.prefix, r.prefix.Masked())
		case r.prefix.Bits() < 8 || r.prefix.Bits() > r.most:
			return fmt.Errorf("%s %s must be between a /8 and a /%d", r.name, r.prefix, r.most)
		case reserved(r.prefix):
			return fmt.Errorf("%s %s is no range of ordinary addresses", r.name, r.prefix)
		}
	}
	switch {
	case n.PodCIDR.Bits() < n.ClusterCIDR.Bits() || !n.ClusterCIDR.Contains(n.PodCIDR.Addr()):
		return fmt.Errorf("podCIDR %s is not inside clusterCIDR %s", n.PodCIDR, n.ClusterCIDR)
	case n.ServiceCIDR.Overlaps(n.ClusterCIDR):
		return fmt.Errorf("serviceCIDR %s overlaps clusterCIDR %s", n.ServiceCIDR, n.ClusterCIDR)
	case n.LinkCIDR.Bits() != 24:
		return fmt.Errorf("linkCIDR %s is not a /24", n.LinkCIDR)
	case n.LinkCIDR.Overlaps(n.ClusterCIDR) || n.LinkCIDR.Overlaps(n.ServiceCIDR):
		return fmt.Errorf("linkCIDR %s overlaps clusterCIDR %s or serviceCIDR %s", n.LinkCIDR, n.ClusterCIDR, n.ServiceCIDR)
	case n.MTU < minMTU || n.MTU > DefaultMTU:
		return fmt.Errorf("mtu %d is not between %d and %d", n.MTU, minMTU, DefaultMTU)
	case n.WayOut != "" && n.WayOut != "pasta" && n.WayOut != "slirp4netns":
		return fmt.Errorf("wayOut %q is neither pasta nor slirp4netns", n.WayOut)
	}
	return nil
}

// reserved tells loopback, multicast and the like.
func reserved(p netip.Prefix) bool {
	a := p.Addr()
	return a.IsLoopback() || a.IsMulticast() || a.As4()[0] == 0 || a.As4()[0] >= 240
}

// ValidUID tells whether uid may name a pod's namespace, and so a file: lower
// case letters, digits and dashes, at most 64, no dash at either end.
func ValidUID(uid string) bool {
	if uid == "" || len(uid) > maxUID || uid == NodeName || uid[0] == '-' || uid[len(uid)-1] == '-' {
		return false
	}
	for _, c := range []byte(uid) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// Validate says what is wrong with p on node n, or nil.
func (p Pod) Validate(n Node) error {
	switch {
	case !ValidUID(p.UID):
		return fmt.Errorf("pod uid %q is not 1 to %d of a-z, 0-9 and dashes", p.UID, maxUID)
	case !p.Address.IsValid():
		return fmt.Errorf("pod %s has no address", p.UID)
	case p.Address.Zone() != "" || !n.PodCIDR.Contains(p.Address):
		return fmt.Errorf("address %s of pod %s is not in this node's range %s", p.Address, p.UID, n.PodCIDR)
	case p.Address == n.PodCIDR.Addr() || p.Address == lastAddr(n.PodCIDR):
		return fmt.Errorf("address %s of pod %s is the network or broadcast address of %s", p.Address, p.UID, n.PodCIDR)
	case p.Address == n.Gateway():
		return fmt.Errorf("address %s of pod %s is the bridge's own", p.Address, p.UID)
	}
	for _, port := range p.Ports {
		if err := port.validate(); err != nil {
			return fmt.Errorf("host port of pod %s: %w", p.UID, err)
		}
	}
	return nil
}

func (h HostPort) validate() error {
	_, err := netip.ParseAddr(h.IP)
	switch {
	case h.Protocol != "TCP" && h.Protocol != "UDP":
		return fmt.Errorf("protocol %q is neither TCP nor UDP", h.Protocol)
	case h.IP != "" && err != nil:
		return fmt.Errorf("%q is no IP address", h.IP)
	case h.Port < 1 || h.Port > 65535 || h.PodPort < 1 || h.PodPort > 65535:
		return fmt.Errorf("%d to %d: ports are from 1 to 65535", h.Port, h.PodPort)
	}
	return nil
}

// lastAddr is the highest address of p.
func lastAddr(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for bit := p.Bits(); bit < len(b)*8; bit++ {
		b[bit/8] |= 0x80 >> (bit % 8)
	}
	addr, _ := netip.AddrFromSlice(b)
	return addr
}
