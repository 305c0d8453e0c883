// Package kubescheduler measures Bramble's scheduler side by side with
// Kubernetes' own, k8s.io/kubernetes/pkg/scheduler, in one run: each round has
// both place the same pods in the same cluster. `make bench-scheduler` runs it.
//
// It is a module of its own, so that the programs' go.mod has no
// k8s.io/kubernetes. Kubernetes' scheduler has its default profile here, and no
// limit of its own on requests.
package kubescheduler
