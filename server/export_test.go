package server

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"bramble.dev/bramble/server/objects"
	"bramble.dev/bramble/server/store"
)

// RunAggregation runs the controller that aggregates roles on a registry.
func RunAggregation(ctx context.Context, registry *objects.Registry) error {
	kind, _ := registry.Kind(rbacv1.GroupName, "clusterroles")
	return aggregation{registry, kind}.run(ctx)
}

// NewBackups serves backups of a data directory to clients that take something in
// patience.
func NewBackups(s *store.Store, dir string, patience time.Duration) http.Handler {
	return backups{s, dir, time.Now, slog.New(slog.DiscardHandler), make(chan struct{}, 1), patience}
}

// PutInPlace is the last step of a restore.
var PutInPlace = putInPlace

// What is kept of pods and nodes for the scheduler, and of nodes for their controller.
func ReducePod(p *corev1.Pod)    { reducePod(p) }
func ReduceNode(n *corev1.Node)  { reduceNode(n) }
func ReduceHeard(n *corev1.Node) { reduceHeard(n) }
