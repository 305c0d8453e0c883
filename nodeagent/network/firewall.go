package network

import (
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"bramble.dev/bramble/nodeagent/network/netapi"
)

// setFirewall replaces our table in the current namespace by one that
// translates pods' source address when they leave by the way out, in one step.
// Connections that stand keep their translation.
//
//	table ip bramble {
//	  chain postrouting { type nat hook postrouting priority srcnat;
//	    ip saddr PodCIDR oifname != "br0" masquerade }
//	}
func setFirewall(n netapi.Node) error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	table := &nftables.Table{Name: "bramble", Family: nftables.TableFamilyIPv4}
	c.AddTable(table) // so that there is one to delete
	c.DelTable(table)
	c.AddTable(table)
	chain := c.AddChain(&nftables.Chain{
		Name: "postrouting", Table: table, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource,
	})
	c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: masquerade(n)})
	if err := c.Flush(); err != nil {
		return fmt.Errorf("cannot load the node's nftables rules (is the kernel module nf_tables there?): %w", err)
	}
	return nil
}

func masquerade(n netapi.Node) []expr.Any {
	const sourceOffset, addressLen = 12, 4 // in the IPv4 header
	range4 := ipNet(n.PodCIDR)
	device := make([]byte, unix.IFNAMSIZ)
	copy(device, bridgeName)
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: sourceOffset, Len: addressLen},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: addressLen, Mask: range4.Mask, Xor: binaryutil.NativeEndian.PutUint32(0)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: range4.IP},
		&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: 1},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: device},
		&expr.Masq{},
	}
}
