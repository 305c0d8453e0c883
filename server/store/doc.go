// Package store keeps the cluster's objects: their current state in one SQLite
// file and, as encoded bytes, in memory, with a bounded log of recent changes
// for watchers. It knows nothing of Kubernetes; server/objects is its caller.
//
// One goroutine writes. It takes the commits that wait, up to 64, into one
// transaction, and publishes them in the order of their revisions after it is
// on disk. Readers and watchers read memory only, so that they go on while the
// disk is slow or full.
//
// A revision is a run number in the upper 32 bits and a counter in the lower.
// The run number is raised on disk, outside the write-ahead log, before Open
// returns: a log whose tail is torn off by a power cut loses writes but never
// causes a revision to be handed out twice.
package store
