package network

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"

	"github.com/containernetworking/cni/libcni"

	"bramble.dev/bramble/nodeagent/network/netapi"
	"bramble.dev/bramble/nodeagent/network/netns"
)

const (
	cniNetwork = "bramble"
	podDevice  = "eth0"
)

// attachment is a pod's place on the bridge, as CNI sees it.
type attachment struct {
	cni  *libcni.CNIConfig
	node string // the node's namespace, where plugins run
	list *libcni.NetworkConfigList
	rt   *libcni.RuntimeConf
}

func (s *Server) attachment(n netapi.Node, p netapi.Pod) (*attachment, error) {
	conf, err := json.Marshal(cniConfig(n, p.Address))
	if err != nil {
		return nil, err
	}
	list, err := libcni.NetworkConfFromBytes(conf)
	if err != nil {
		return nil, fmt.Errorf("cannot make the CNI configuration: %w", err)
	}
	return &attachment{
		cni:  libcni.NewCNIConfigWithCacheDir([]string{s.config.PluginDir}, s.files.cni(), nil),
		node: s.files.node(), list: list,
		rt: &libcni.RuntimeConf{ContainerID: p.UID, NetNS: s.files.pod(p.UID), IfName: podDevice},
	}, nil
}

// cniConfig is the network of one pod: its address is pinned, so the static
// plugin, which keeps no state, hands it out. The bridge and its address are
// ours already.
func cniConfig(n netapi.Node, addr netip.Addr) map[string]any {
	ipam := map[string]any{"type": "static", "routes": []any{map[string]any{"dst": "0.0.0.0/0", "gw": n.Gateway()}}}
	if addr.IsValid() {
		ipam["addresses"] = []any{map[string]any{"address": netip.PrefixFrom(addr, n.PodCIDR.Bits()), "gateway": n.Gateway()}}
	}
	bridge := map[string]any{"type": "bridge", "bridge": bridgeName, "mtu": n.MTU, "hairpinMode": true, "ipam": ipam}
	if addr.IsValid() {
		bridge["args"] = map[string]any{"cni": map[string]any{"mac": hardwareAddr(addr).String()}}
	}
	return map[string]any{"cniVersion": "1.0.0", "name": cniNetwork, "plugins": []any{bridge}}
}

// hardwareAddr is the same for the same address, so that neighbours need not
// learn anew when a pod's device is rebuilt or its address is another pod's.
func hardwareAddr(addr netip.Addr) net.HardwareAddr {
	b := addr.AsSlice()
	return append(net.HardwareAddr{0x0a, 0x58}, b[len(b)-4:]...) // 0x0a: locally administered
}

func (a *attachment) add(ctx context.Context) error {
	return a.run("ADD", func() error {
		_, err := a.cni.AddNetworkList(ctx, a.list, a.rt)
		return err
	})
}

func (a *attachment) check(ctx context.Context) error {
	return a.run("CHECK", func() error { return a.cni.CheckNetworkList(ctx, a.list, a.rt) })
}

func (a *attachment) del(ctx context.Context) error {
	return a.run("DEL", func() error { return a.cni.DelNetworkList(ctx, a.list, a.rt) })
}

// run runs plugins in the node's namespace: a child of the thread that entered
// it is born there.
func (a *attachment) run(verb string, fn func() error) error {
	if err := netns.Do(a.node, fn); err != nil {
		return fmt.Errorf("cannot run CNI %s for pod %s: %w", verb, a.rt.ContainerID, err)
	}
	return nil
}
