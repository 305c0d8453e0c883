package api

import "time"

// Group is the API group of Bramble's own kinds; Version is its only version.
const (
	Group   = "edge.bramble.dev"
	Version = "v1alpha1"
)

// Annotations that Bramble reads or writes.
const (
	// AnnotationFailover on a pod says what happens to it when its node is out
	// of reach: FailoverKeep, FailoverMove or FailoverExclusive.
	AnnotationFailover = "edge.bramble.dev/failover"
	// AnnotationIgnoreConditions on a pod names conditions of boards, separated by
	// commas, that are not to keep it from a node; "*": none is to.
	AnnotationIgnoreConditions = "edge.bramble.dev/ignore-conditions"
	// AnnotationAvoidConditions on a pod names conditions of boards that keep it from a
	// node, also if it then fits nowhere.
	AnnotationAvoidConditions = "edge.bramble.dev/avoid-conditions"
)

// RevokedKey is the annotation of a Node that was revoked, with the time, and the
// taint that keeps pods from it. Both go when the node has joined again.
const RevokedKey = "edge.bramble.dev/revoked"

// Values of AnnotationFailover.
const (
	FailoverKeep      = "keep"
	FailoverMove      = "move"
	FailoverExclusive = "exclusive"
)

// HeaderEpoch is set on every response of the API server to the UUID of its
// database. An agent that sees an epoch it does not know deletes nothing.
const HeaderEpoch = "Bramble-Epoch"

// HeaderFollows names, after a restore that was confirmed, the epochs whose place
// the database has taken, separated by commas: an agent that knows one of them
// goes on with the new one.
const HeaderFollows = "Bramble-Epoch-Follows"

// ServerName is the name that every server certificate carries and every
// client verifies, whatever address it dialled: a new address breaks nothing.
const ServerName = "bramble-server"

// ALPN is the protocol of an agent's tunnel connection on the API port.
const ALPN = "bramble/1"

// HardwareEvery is how often a node's agent reports its board when nothing changes;
// what does change is reported within half a minute.
const HardwareEvery = 30 * time.Minute
