package scheduler

import (
	"maps"
	"slices"
)

// Fit wants a node to have what the pod asks for, beside what it has promised
// to others.
type Fit struct{}

// Name implements Filter.
func (Fit) Name() string { return "NodeResourcesFit" }

// Cures implements Filter: room comes with nodes, with their size and with
// pods that leave.
func (Fit) Cures(c Cause) bool { return c.ofNodes() || c == PodLeft }

// Prepare implements Filter.
func (Fit) Prepare(_ *Snapshot, p *Pod) Check {
	return checkFunc(func(n *Node) []Reason { return shortages(p, n) })
}

// shortages says what n has not enough of. Of what the pod does not ask for, a
// node may be short.
func shortages(p *Pod, n *Node) []Reason {
	var reasons []Reason
	lacks := func(ask, asked, has int64) bool { return ask > 0 && ask > has-asked }
	if lacks(p.Asked.Pods, n.Asked.Pods, n.Allocatable.Pods) {
		reasons = append(reasons, same("had no room for one more pod"))
	}
	if lacks(p.Asked.MilliCPU, n.Asked.MilliCPU, n.Allocatable.MilliCPU) {
		reasons = append(reasons, same("had not enough CPU"))
	}
	if lacks(p.Asked.MemoryBytes, n.Asked.MemoryBytes, n.Allocatable.MemoryBytes) {
		reasons = append(reasons, same("had not enough memory"))
	}
	if lacks(p.Asked.StorageBytes, n.Asked.StorageBytes, n.Allocatable.StorageBytes) {
		reasons = append(reasons, same("had not enough ephemeral storage"))
	}
	if len(p.Asked.Extended) == 0 {
		return reasons
	}
	for _, name := range slices.Sorted(maps.Keys(p.Asked.Extended)) {
		if lacks(p.Asked.Extended[name], n.Asked.Extended[name], n.Allocatable.Extended[name]) {
			reasons = append(reasons, same("had not enough "+string(name)))
		}
	}
	return reasons
}
