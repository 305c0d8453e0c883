package server

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/server/nodes"
	"bramble.dev/bramble/server/objects"
)

// nodesName is who the writes and events of the node controller are by.
const nodesName = "bramble-node-controller"

// leases is the node controller's view of the registry.
type leases struct {
	registry     *objects.Registry
	nodes, lease *objects.Kind
}

// Follow tells the node controller of nodes and their leases.
func (l leases) Follow(ctx context.Context, f func(nodes.Event)) error {
	return followAll(ctx, func() { f(nodes.Event{Synced: true}) },
		&follower{registry: l.registry, kind: l.nodes, reduce: reduceHeard, tell: func(obj objects.Object, deleted bool) {
			f(nodes.Event{Node: obj.(*corev1.Node), Deleted: deleted})
		}},
		&follower{registry: l.registry, kind: l.lease, namespace: corev1.NamespaceNodeLease, tell: func(obj objects.Object, deleted bool) {
			f(nodes.Event{Lease: obj.(*coordinationv1.Lease), Deleted: deleted})
		}},
	)
}

func (l leases) ChangeStatus(ctx context.Context, name string, change func(*corev1.Node)) error {
	return l.change(ctx, "status", name, change)
}

func (l leases) ChangeNode(ctx context.Context, name string, change func(*corev1.Node)) error {
	return l.change(ctx, "", name, change)
}

func (l leases) change(ctx context.Context, sub, name string, change func(*corev1.Node)) error {
	_, err := l.registry.Update(ctx, l.nodes, sub, "", name, func(current objects.Object) (objects.Object, error) {
		change(current.(*corev1.Node))
		return current, nil
	}, objects.WriteOptions{FieldManager: nodesName})
	return err
}
