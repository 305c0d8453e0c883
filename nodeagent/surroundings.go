package nodeagent

import (
	"bufio"
	"net"
	"net/netip"
	"os"
	"strings"

	"bramble.dev/bramble/nodeagent/pod"
)

// hostAddress is this machine's address as seen on the way to the server, else
// its first global one; empty when there is none. No packet is sent.
func hostAddress(servers []string) string {
	for _, server := range servers {
		conn, err := net.Dial("udp", server)
		if err != nil {
			continue
		}
		local, err := netip.ParseAddrPort(conn.LocalAddr().String())
		_ = conn.Close()
		if err == nil && !local.Addr().IsLoopback() {
			return local.Addr().Unmap().String()
		}
	}
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		prefix, err := netip.ParsePrefix(a.String())
		if err == nil && prefix.Addr().IsGlobalUnicast() && prefix.Addr().Is4() {
			return prefix.Addr().String()
		}
	}
	return ""
}

// readResolver reads a resolv.conf. Name servers on the loopback are of no use
// to a pod, which has a loopback of its own.
func readResolver(path string) pod.Resolver {
	var r pod.Resolver
	f, err := os.Open(path)
	if err != nil {
		return r
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "nameserver":
			if addr, err := netip.ParseAddr(fields[1]); err == nil && !addr.IsLoopback() {
				r.Servers = append(r.Servers, fields[1])
			}
		case "search":
			r.Searches = fields[1:]
		case "options":
			r.Options = append(r.Options, fields[1:]...)
		}
	}
	return r
}

// nodeResolver is the node's resolv.conf, or systemd-resolved's own view where
// that names nothing but the loopback.
func nodeResolver() pod.Resolver {
	r := readResolver("/etc/resolv.conf")
	if len(r.Servers) == 0 {
		if upstream := readResolver("/run/systemd/resolve/resolv.conf"); len(upstream.Servers) > 0 {
			return upstream
		}
	}
	return r
}
