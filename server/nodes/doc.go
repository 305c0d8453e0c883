// Package nodes watches over the nodes' leases. A node whose lease is not
// renewed for a while becomes Unknown and gets Kubernetes' taints; one that is
// heard again loses them. What then happens to its pods is not its business.
//
// A renewal is the change of a lease as this server sees it, by its own
// monotonic clock: no wall clock, of a node or of the server, is ever compared.
// After a start of the server all nodes are Unknown until they are heard, and
// only after a whole grace period does it hold that they are lost. A node that
// was taken for Unknown reports its status anew: only it knows it.
package nodes
