package network

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// setNodeSysctls sets up forwarding in the current namespace. Bridged packets
// are kept out of the IP tables where a kernel would pass them there, so that
// kernels with and without bridge netfilter behave alike.
func setNodeSysctls() error {
	err := sysctl("net/ipv4/ip_forward", "1")
	for _, name := range []string{"bridge-nf-call-iptables", "bridge-nf-call-ip6tables", "bridge-nf-call-arptables"} {
		if e := sysctl("net/bridge/"+name, "0"); !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// setPodSysctls gives the current namespace what Kubernetes' runtimes give
// pods: ping without a capability and ports below 1024 for any user.
func setPodSysctls() error {
	// The groups must be mapped in our user namespace; its root always is.
	if sysctl("net/ipv4/ping_group_range", "0 65535") != nil {
		if err := sysctl("net/ipv4/ping_group_range", "0 0"); err != nil {
			return err
		}
	}
	return sysctl("net/ipv4/ip_unprivileged_port_start", "0")
}

// sysctl sets a value of the thread's own network namespace, if it differs.
func sysctl(name, value string) error {
	path := filepath.Join("/proc/sys", name)
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if strings.Join(strings.Fields(string(old)), " ") == value {
		return nil
	}
	return os.WriteFile(path, []byte(value), 0)
}
