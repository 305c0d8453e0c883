package state

import (
	"errors"
	"net/netip"
)

// ErrNoAddress means that each address of the node's range has a pod.
var ErrNoAddress = errors.New("the node's pod range has no free address")

// usable reports whether a pod may have addr. The network's own address, the
// bridge's (the first) and the last (IPv4's broadcast) are nobody's.
func usable(prefix netip.Prefix, addr netip.Addr) bool {
	prefix = prefix.Masked()
	return prefix.Contains(addr) && prefix.Contains(addr.Next()) && addr.Compare(prefix.Addr().Next()) > 0
}

// free returns a usable address of prefix that is not taken: the first after
// last, or else the first of all, so that an address rests before it is used
// again.
func free(prefix netip.Prefix, last netip.Addr, taken map[netip.Addr]bool) (netip.Addr, error) {
	prefix = prefix.Masked()
	first := prefix.Addr().Next().Next()
	search := func(addr, end netip.Addr) (netip.Addr, bool) {
		for ; usable(prefix, addr) && addr != end; addr = addr.Next() {
			if !taken[addr] {
				return addr, true
			}
		}
		return netip.Addr{}, false
	}
	start := first
	if last.IsValid() && usable(prefix, last.Next()) && first.Compare(last) <= 0 {
		start = last.Next()
	}
	if addr, ok := search(start, netip.Addr{}); ok {
		return addr, nil
	}
	if addr, ok := search(first, start); ok {
		return addr, nil
	}
	return netip.Addr{}, ErrNoAddress
}
