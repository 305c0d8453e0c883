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
// Errors come as {"error": "..."} with a 4xx or 5xx status.
package netapi

import "net/netip"

// Node is what the node's network namespace needs. All prefixes hold one family.
type Node struct {
	PodCIDR     netip.Prefix `json:"podCIDR"`     // this node's pods; the bridge takes its first address
	ClusterCIDR netip.Prefix `json:"clusterCIDR"` // all nodes' pods
	ServiceCIDR netip.Prefix `json:"serviceCIDR"`
	MTU         int          `json:"mtu"` // of bridge and pods' links; 0: 65520
}

// NodeStatus is the node's namespace as it stands.
type NodeStatus struct {
	Path    string     `json:"path"` // the pinned namespace
	Gateway netip.Addr `json:"gateway"`
	WayOut  string     `json:"wayOut"` // "pasta", "slirp4netns", or empty with WayOutError
	// WayOutError says why pods do not reach outside the node at present.
	WayOutError string `json:"wayOutError,omitempty"`
}

// Pod is one pod's namespace to be made.
type Pod struct {
	UID     string     `json:"uid"`
	Address netip.Addr `json:"address"`
}

// PodStatus is one pod's namespace as it stands.
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
