package network

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"bramble.dev/bramble/nodeagent/network/netapi"
	"bramble.dev/bramble/nodeagent/network/netns"
	"bramble.dev/bramble/nodeagent/network/wayout"
)

const (
	bridgeName = "br0"
	// settle is how long PUT node waits to hear whether the way out works.
	settle = 3 * time.Second
)

// setNode makes sure of the node's network, records it for our successor, and
// says how it stands.
func (s *Server) setNode(ctx context.Context, n netapi.Node) (netapi.NodeStatus, error) {
	if err := s.checkPlace(); err != nil {
		return netapi.NodeStatus{}, err
	}
	release, err := s.hold(ctx)
	if err != nil {
		return netapi.NodeStatus{}, err
	}
	err = s.build(n)
	release()
	if err != nil {
		return netapi.NodeStatus{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	way := s.wayOut.Status(ctx)
	status := netapi.NodeStatus{Path: s.files.node(), Gateway: n.Gateway(), WayOut: way.Program, DNS: []netip.Addr{n.Gateway()}}
	if way.Err != nil {
		status.WayOutError = way.Err.Error()
	}
	return status, nil
}

// build makes the node's namespace what n says. Each step may be repeated.
func (s *Server) build(n netapi.Node) error {
	if !netns.Pinned(s.files.node()) {
		if err := checkHostRoutes(n); err != nil {
			return err
		}
	}
	if err := netns.Create(s.files.node()); err != nil {
		return err
	}
	err := netns.Do(s.files.node(), func() error {
		return errors.Join(setBridge(n), setRoutes(n), setFirewall(n), setNodeSysctls())
	})
	if err != nil {
		return fmt.Errorf("cannot set up the node's network: %w", err)
	}
	if err := s.pinForWayOut(); err != nil {
		return err
	}
	if err := s.remember(n); err != nil {
		return err
	}
	s.relay.serve(s.files.node(), n.Gateway())
	s.wayOut.Set(wayout.Config{Path: s.files.wayOutNetns(), Link: n.LinkCIDR, MTU: n.MTU, Program: n.WayOut})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node = &n
	return nil
}

// current returns the node's settings, or an ErrNotReady.
func (s *Server) current() (netapi.Node, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.node == nil || !netns.Pinned(s.files.node()) {
		return netapi.Node{}, notReady()
	}
	return *s.node, nil
}

// pinForWayOut gives the way out a name of the namespace that it may open.
func (s *Server) pinForWayOut() error {
	if same(s.files.node(), s.files.wayOutNetns()) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(s.files.wayOutNetns()), 0o700); err != nil {
		return err
	}
	return netns.Alias(s.files.node(), s.files.wayOutNetns())
}

func same(a, b string) bool { return inode(a) == inode(b) }

// inode identifies the namespace pinned at path, or is 0.
func inode(path string) uint64 {
	var st unix.Stat_t
	if !netns.Pinned(path) || unix.Stat(path, &st) != nil {
		return 0
	}
	return st.Ino // unique while any reference to the namespace lives
}

// remember records n in the runtime directory, where a reboot forgets it.
func (s *Server) remember(n netapi.Node) error {
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	early := s.files.record() + ".new"
	if err := os.WriteFile(early, data, 0o600); err != nil {
		return err
	}
	return os.Rename(early, s.files.record())
}

// recall takes over the node's network from the process before us.
func (s *Server) recall() error {
	data, err := os.ReadFile(s.files.record())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var n netapi.Node
	if err := json.Unmarshal(data, &n); err != nil {
		return fmt.Errorf("cannot read %s: %w", s.files.record(), err)
	}
	if err := n.Validate(); err != nil {
		return fmt.Errorf("cannot use %s: %w", s.files.record(), err)
	}
	return s.build(n)
}

// setBridge makes the bridge with the gateway's address and no other.
func setBridge(n netapi.Node) error {
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridgeName, MTU: n.MTU}}
	if err := netlink.LinkAdd(bridge); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("cannot make bridge %s: %w", bridgeName, err)
	}
	link, err := netlink.LinkByName(bridgeName)
	if err != nil {
		return err
	}
	if link.Attrs().MTU != n.MTU {
		if err := netlink.LinkSetMTU(link, n.MTU); err != nil {
			return err
		}
	}
	// Else the bridge has the lowest address of its ports, and pods lose their
	// gateway for seconds when ports come and go.
	if mac := hardwareAddr(n.Gateway()); !bytes.Equal(link.Attrs().HardwareAddr, mac) {
		if err := netlink.LinkSetHardwareAddr(link, mac); err != nil {
			return err
		}
	}
	wanted := ipNet(netip.PrefixFrom(n.Gateway(), n.PodCIDR.Bits()))
	addrs, err := netlink.AddrList(link, netlink.FAMILY_V4)
	if err != nil {
		return err
	}
	for _, a := range addrs {
		if a.IPNet.String() == wanted.String() {
			continue
		}
		if err := netlink.AddrDel(link, &a); err != nil {
			return err
		}
	}
	if err := netlink.AddrReplace(link, &netlink.Addr{IPNet: wanted}); err != nil {
		return fmt.Errorf("cannot give %s its address: %w", bridgeName, err)
	}
	return netlink.LinkSetUp(link)
}

// setRoutes makes the rest of the cluster's ranges unreachable: packets for
// them must not leave by the way out, and their senders hear at once.
func setRoutes(n netapi.Node) error {
	old, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Type: unix.RTN_UNREACHABLE}, netlink.RT_FILTER_TYPE)
	if err != nil {
		return err
	}
	for _, dst := range []netip.Prefix{n.ClusterCIDR, n.ServiceCIDR} {
		if err := netlink.RouteReplace(&netlink.Route{Dst: ipNet(dst), Type: unix.RTN_UNREACHABLE}); err != nil {
			return fmt.Errorf("cannot close the route to %s: %w", dst, err)
		}
	}
	for _, r := range old {
		if r.Dst.String() == n.ClusterCIDR.String() || r.Dst.String() == n.ServiceCIDR.String() {
			continue
		}
		if err := netlink.RouteDel(&r); err != nil {
			return err
		}
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
