package state

import (
	"errors"
	"net/netip"
)

// ErrNoAddress means that each address of the node's range has a pod.
var ErrNoAddress = errors.New("the node's pod range has no free address")

// free returns an address of prefix that is not taken: the first after last, or
// else the first of all, so that an address rests before it is used again. The
// network's own address, the bridge's (the first) and the last (IPv4's
// broadcast) are nobody's.
func free(prefix netip.Prefix, last netip.Addr, taken map[netip.Addr]bool) (netip.Addr, error) {
	prefix = prefix.Masked()
	first := prefix.Addr().Next().Next()
	usable := func(addr netip.Addr) bool { return prefix.Contains(addr) && prefix.Contains(addr.Next()) }
	search := func(addr, end netip.Addr) (netip.Addr, bool) {
		for ; usable(addr) && addr != end; addr = addr.Next() {
			if !taken[addr] {
				return addr, true
			}
		}
		return netip.Addr{}, false
	}
	start := first
	if last.IsValid() && usable(last.Next()) && first.Compare(last) <= 0 {
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
