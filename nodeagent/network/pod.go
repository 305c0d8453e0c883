package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"

	"bramble.dev/bramble/nodeagent/network/netapi"
	"bramble.dev/bramble/nodeagent/network/netns"
)

// attach makes sure that pod p has its namespace with its address on the bridge.
// What is half made or stale is made anew, in the same namespace where that
// lives: containers may be in it.
func (s *Server) attach(ctx context.Context, p netapi.Pod) (netapi.PodStatus, error) {
	if err := s.checkPlace(); err != nil {
		return netapi.PodStatus{}, err
	}
	n, err := s.current()
	if err != nil {
		return netapi.PodStatus{}, err
	}
	if err := p.Validate(n); err != nil {
		return netapi.PodStatus{}, invalid(err)
	}
	release, err := s.hold(ctx)
	if err != nil {
		return netapi.PodStatus{}, err
	}
	defer release()
	if err := s.checkUnique(p); err != nil {
		return netapi.PodStatus{}, err
	}
	if err := s.connect(ctx, n, p); err != nil {
		return netapi.PodStatus{}, err
	}
	if err := s.ports.set(p.UID, p.Address, p.Ports); err != nil {
		return netapi.PodStatus{}, err
	}
	return s.podStatus(p.UID, n), nil
}

func (s *Server) connect(ctx context.Context, n netapi.Node, p netapi.Pod) error {
	a, err := s.attachment(n, p)
	if err != nil {
		return err
	}
	path := s.files.pod(p.UID)
	if netns.Pinned(path) {
		if address(path) == p.Address && a.check(ctx) == nil {
			return nil
		}
		s.config.Log.Info("a pod's network is made anew", "pod", p.UID, "address", p.Address)
		if err := a.del(ctx); err != nil {
			return err
		}
	}
	if err := netns.Create(path); err != nil {
		return err
	}
	if err := netns.Do(path, setPodSysctls); err != nil {
		return fmt.Errorf("cannot set the sysctls of pod %s: %w", p.UID, err)
	}
	return a.add(ctx)
}

// detach removes the pod's namespace, and its place on the bridge at once even
// if a process is still in it.
func (s *Server) detach(ctx context.Context, uid string) error {
	release, err := s.hold(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := s.ports.set(uid, netip.Addr{}, nil); err != nil {
		return err
	}
	path := s.files.pod(uid)
	if n, err := s.current(); err == nil && netns.Pinned(path) {
		a, err := s.attachment(n, netapi.Pod{UID: uid, Address: address(path)})
		if err == nil {
			err = a.del(ctx)
		}
		if err != nil {
			s.config.Log.Warn("the pod's namespace is removed without CNI", "pod", uid, "err", err)
		}
	}
	return netns.Remove(path)
}

// checkUnique makes sure that no other pod has p's address.
func (s *Server) checkUnique(p netapi.Pod) error {
	uids, err := s.uids()
	if err != nil {
		return err
	}
	for _, uid := range uids {
		if uid != p.UID && address(s.files.pod(uid)) == p.Address {
			return conflict("address %s, wanted for pod %s, is pod %s's", p.Address, p.UID, uid)
		}
	}
	return nil
}

// pods lists the namespaces of pods from what is pinned and what is in them.
func (s *Server) pods() ([]netapi.PodStatus, error) {
	n, err := s.current()
	if err != nil && !errors.Is(err, netapi.ErrNotReady) {
		return nil, err
	}
	uids, err := s.uids()
	if err != nil {
		return nil, err
	}
	pods := make([]netapi.PodStatus, 0, len(uids))
	for _, uid := range uids {
		pods = append(pods, s.podStatus(uid, n))
	}
	return pods, nil
}

func (s *Server) podStatus(uid string, n netapi.Node) netapi.PodStatus {
	status := netapi.PodStatus{UID: uid, Path: s.files.pod(uid), Address: address(s.files.pod(uid))}
	if n.PodCIDR.IsValid() {
		status.Gateway = n.Gateway()
	}
	return status
}

// uids are the names of pods' namespaces, those gone stale included, sorted.
func (s *Server) uids() ([]string, error) {
	entries, err := os.ReadDir(s.files.netns())
	if err != nil {
		return nil, err
	}
	var uids []string
	for _, e := range entries {
		if netapi.ValidUID(e.Name()) {
			uids = append(uids, e.Name())
		}
	}
	return uids, nil
}

// address is the address of the pod's device in the namespace pinned at path,
// or the zero Addr.
func address(path string) (found netip.Addr) {
	if !netns.Pinned(path) {
		return netip.Addr{}
	}
	_ = netns.Do(path, func() error { // what cannot be read is not made
		link, err := netlink.LinkByName(podDevice)
		if err != nil {
			return err
		}
		addrs, err := netlink.AddrList(link, netlink.FAMILY_V4)
		if err == nil && len(addrs) > 0 {
			found, _ = netip.AddrFromSlice(addrs[0].IP.To4())
		}
		return err
	})
	return found
}
