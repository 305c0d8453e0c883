package container

import (
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Target is a running container as probes and hooks reach it.
type Target struct {
	ID      string
	PID     int               // of its first process
	Address netip.Addr        // of its pod
	Spec    *corev1.Container // not to be changed
}

// Probed is a running container whose probes are to run.
type Probed struct {
	Target
	StartedAt time.Time
	Before    Health // as it was known before this agent; zero: nothing is known
}

// Health is what a container's probes say. Without a probe, Started and Ready
// are true and Failed is empty.
type Health struct {
	Started, Ready bool
	Failed         ProbeKind // the probe that wants the container killed
}

// ProbeKind is one of a container's three probes.
type ProbeKind string

// The kinds of probes, as the kubelet's events name them.
const (
	Startup   ProbeKind = "startup"
	Liveness  ProbeKind = "liveness"
	Readiness ProbeKind = "readiness"
)
