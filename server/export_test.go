package server

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"

	"bramble.dev/bramble/server/objects"
)

// RunAggregation runs the controller that aggregates roles on a registry.
func RunAggregation(ctx context.Context, registry *objects.Registry) error {
	kind, _ := registry.Kind(rbacv1.GroupName, "clusterroles")
	return aggregation{registry, kind}.run(ctx)
}

// PutInPlace is the last step of a restore.
var PutInPlace = putInPlace
