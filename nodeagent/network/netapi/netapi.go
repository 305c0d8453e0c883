// Package netapi is how the agent speaks to the network process: HTTP and JSON
// over a unix socket that only the node's user may open. It is a leaf, with a
// client; the process itself is package network.
//
//	PUT    /v1/node          Node      → NodeStatus    the node's namespace; idempotent
//	PUT    /v1/pods/{uid}    Pod       → PodStatus     a pod's namespace; idempotent
//	DELETE /v1/pods/{uid}                              succeeds also when there is none
//	GET    /v1/pods                    → []PodStatus
//	GET    /v1/dial?address=IP:PORT    → 101, then the TCP stream ("Upgrade: tcp"),
//	                                     dialled from the node's namespace
//	GET    /healthz                    → Health
//
// Errors come as {"error": "..."} with a status: 400 what was asked is wrong,
// 409 it clashes with what is there, 423 a port of the host cannot be had, 503 the node's network is not set up (PUT
// it first), 500 anything else.
package netapi

import "net/netip"

// Node is what the node's network namespace needs. All prefixes hold one family.
type Node struct {
	PodCIDR     netip.Prefix `json:"podCIDR"`     // this node's pods; the bridge takes its first address
	ClusterCIDR netip.Prefix `json:"clusterCIDR"` // all nodes' pods
	ServiceCIDR netip.Prefix `json:"serviceCIDR"`
	MTU         int          `json:"mtu"` // of bridge and pods' links; 0: 65520

	// LinkCIDR is the IPv4 /24 between the node's namespace and its way out; no
	// packet with an address of it leaves the node. Zero: 198.18.2.0/24.
	LinkCIDR netip.Prefix `json:"linkCIDR,omitzero"`
	// WayOut is the only program to be used as the way out, "pasta" or
	// "slirp4netns"; empty: what is installed, pasta before slirp4netns.
	WayOut string `json:"wayOut,omitempty"`
}

// NodeStatus is the node's namespace as it stands.
type NodeStatus struct {
	Path    string     `json:"path"` // the pinned namespace
	Gateway netip.Addr `json:"gateway"`
	WayOut  string     `json:"wayOut"` // "pasta", "slirp4netns", or empty with WayOutError
	// WayOutError says why pods do not reach outside the node at present.
	WayOutError string `json:"wayOutError,omitempty"`
	// DNS is what pods use as name servers, the same for a pod's whole life: a
	// relay on the gateway that asks the host's own resolvers of the moment,
	// those on the host's loopback included.
	DNS []netip.Addr `json:"dns"`
}

// Pod is one pod's namespace to be made.
type Pod struct {
	UID     string     `json:"uid"`
	Address netip.Addr `json:"address"`
	// Ports of the host lead to the pod as long as it has its namespace and the
	// network process runs; after that has ended, PUT again.
	Ports []HostPort `json:"ports,omitempty"`
}

// HostPort is a port of the host that leads to one of a pod's.
type HostPort struct {
	Protocol string `json:"protocol"`     // "TCP" or "UDP"
	IP       string `json:"ip,omitempty"` // of the host; empty: all of its IPv4 addresses
	Port     int    `json:"port"`
	PodPort  int    `json:"podPort"`
}

// PodStatus is one pod's namespace as it stands. Address is the zero Addr when
// its making was cut short: PUT or DELETE it.
type PodStatus struct {
	UID     string     `json:"uid"`
	Address netip.Addr `json:"address"`
	Gateway netip.Addr `json:"gateway"`
	Path    string     `json:"path"`
}

// Health is what the process says of itself.
type Health struct {
	Version string `json:"version"`
	PID     int    `json:"pid"`
}
