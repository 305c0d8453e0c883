package network

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"

	"bramble.dev/bramble/nodeagent/network/netapi"
)

// hostRoute is a route of the host, to something nearer than everywhere.
type hostRoute struct {
	dst    netip.Prefix
	device string
}

// everywhere is the length up to which a route is a way to everywhere, as a
// default route is, or the halves of one that VPNs set.
const everywhere = 7

// checkHostRoutes makes sure that the cluster's ranges hide nothing that the
// host itself reaches. It must run in the host's network namespace.
func checkHostRoutes(n netapi.Node) error {
	list, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return fmt.Errorf("cannot read the host's routes: %w", err)
	}
	var routes []hostRoute
	for _, r := range list {
		if r.Dst == nil {
			continue
		}
		addr, ok := netip.AddrFromSlice(r.Dst.IP)
		bits, _ := r.Dst.Mask.Size()
		if !ok || bits <= everywhere {
			continue
		}
		route := hostRoute{dst: netip.PrefixFrom(addr.Unmap(), bits)}
		if link, err := netlink.LinkByIndex(r.LinkIndex); err == nil {
			route.device = link.Attrs().Name
		}
		routes = append(routes, route)
	}
	return clash(n, routes)
}

// clash returns a conflict that names the first route and setting that overlap.
func clash(n netapi.Node, routes []hostRoute) error {
	for _, r := range []struct {
		setting string
		prefix  netip.Prefix
	}{{"clusterCIDR", n.ClusterCIDR}, {"serviceCIDR", n.ServiceCIDR}, {"linkCIDR", n.LinkCIDR}} {
		for _, route := range routes {
			if r.prefix.Overlaps(route.dst) {
				return conflict("%s %s overlaps this host's route to %s by %s, which pods could not reach: set %s to a range that no node's network uses",
					r.setting, r.prefix, route.dst, route.device, r.setting)
			}
		}
	}
	return nil
}
