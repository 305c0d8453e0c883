// Package probe runs the probes and the lifecycle hooks of running containers:
// HTTP, TCP, gRPC and commands. The pod workers say which containers run; each
// probe has a goroutine of its own, so that none waits for another, and what it
// finds is kept in memory only. What becomes of a container whose probe fails,
// the workers decide.
//
// How often, after what and in which words follows the kubelet. Durations are of
// the monotonic clock.
package probe
