// Package scheduler gives pods their nodes.
//
// Profile.Decide is pure: it takes a Snapshot of the nodes and a pod, asks
// small named plugins, and returns a Decision with what every plugin said.
// Filters say why a node will not do, scores say how good it is; a new rule is
// a new plugin in a file of its own, added to Default.
//
// Scheduler.Run is the one goroutine that owns the snapshot. It keeps it by
// events, lets pods that fit nowhere wait for an event that could help them,
// and asks the Cluster to write down what it decided. Package server makes the
// Cluster of its registry.
package scheduler
