package netapi_test

import (
	"encoding/json"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"bramble.dev/bramble/nodeagent/network/netapi"
)

func testNode() netapi.Node {
	return netapi.Node{
		PodCIDR: netip.MustParsePrefix("10.100.5.0/24"), ClusterCIDR: netip.MustParsePrefix("10.100.0.0/14"),
		ServiceCIDR: netip.MustParsePrefix("10.104.0.0/16"),
	}.WithDefaults()
}

func TestNodeValidate(t *testing.T) {
	if err := testNode().Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		says   string
		change func(*netapi.Node)
	}{
		{"serviceCIDR 10.100.0.0/16 overlaps", func(n *netapi.Node) { n.ServiceCIDR = netip.MustParsePrefix("10.100.0.0/16") }},
		{"linkCIDR 10.104.9.0/24 overlaps", func(n *netapi.Node) { n.LinkCIDR = netip.MustParsePrefix("10.104.9.0/24") }},
		{"is not a /24", func(n *netapi.Node) { n.LinkCIDR = netip.MustParsePrefix("10.9.0.0/16") }},
		{"mtu 100", func(n *netapi.Node) { n.MTU = 100 }},
		{"no range of ordinary addresses", func(n *netapi.Node) { n.ClusterCIDR = netip.MustParsePrefix("224.0.0.0/8") }},
		{"serviceCIDR is missing", func(n *netapi.Node) { n.ServiceCIDR = netip.Prefix{} }},
	} {
		n := testNode()
		c.change(&n)
		if err := n.Validate(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want %q", err, c.says)
		}
	}
}

func TestPodAddresses(t *testing.T) {
	n := testNode()
	n.PodCIDR = netip.MustParsePrefix("10.100.5.64/27")
	for addr, ok := range map[string]bool{
		"10.100.5.64": false, "10.100.5.65": false, "10.100.5.66": true, "10.100.5.94": true, "10.100.5.95": false, "10.100.5.96": false,
	} {
		if err := (netapi.Pod{UID: "a", Address: netip.MustParseAddr(addr)}).Validate(n); (err == nil) != ok {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

// FuzzRequests: no body makes the checks fail badly, and what passes them is
// safe to make files and addresses of.
func FuzzRequests(f *testing.F) {
	f.Add([]byte(`{"podCIDR":"10.100.5.0/24","clusterCIDR":"10.100.0.0/14","serviceCIDR":"10.104.0.0/16","mtu":1420}`), []byte(`{"uid":"a-1","address":"10.100.5.7"}`))
	f.Add([]byte(`{"podCIDR":"0.0.0.0/0"}`), []byte(`{"uid":"../x","address":"fe80::1%eth0"}`))
	f.Fuzz(func(t *testing.T, node, pod []byte) {
		var n netapi.Node
		var p netapi.Pod
		if json.Unmarshal(node, &n) != nil || json.Unmarshal(pod, &p) != nil {
			return
		}
		n = n.WithDefaults()
		if n.Validate() != nil {
			n = testNode()
		}
		if !n.PodCIDR.Contains(n.Gateway()) || !n.ClusterCIDR.Contains(n.Gateway()) {
			t.Fatalf("gateway %s outside of %+v", n.Gateway(), n)
		}
		if p.Validate(n) != nil {
			return
		}
		if filepath.Dir(filepath.Join("/d", p.UID)) != "/d" || filepath.Base(p.UID) != p.UID || p.UID == netapi.NodeName {
			t.Fatalf("uid %q is no file name", p.UID)
		}
		if !n.PodCIDR.Contains(p.Address) || p.Address == n.Gateway() || p.Address == n.PodCIDR.Addr() || !n.PodCIDR.Contains(p.Address.Next()) {
			t.Fatalf("address %s on %s", p.Address, n.PodCIDR)
		}
	})
}
