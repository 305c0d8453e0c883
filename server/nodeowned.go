package server

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/objects"
)

// nodeOwned makes a Node the owner of what its agent keeps beside it: its Lease, as
// Kubernetes has it, and its NodeHardware. They go with it.
type nodeOwned struct {
	registry func() *objects.Registry // made after the chain that this is a link of
}

// Admit implements objects.Admitter.
func (n nodeOwned) Admit(ctx context.Context, req objects.Request) error {
	if req.Verb != "create" || !ofNode(req) {
		return nil
	}
	nodeKind, _ := n.registry().Kind("", "nodes") // in the table
	stored, err := n.registry().Get(ctx, nodeKind, "", req.Name)
	if apierrors.IsNotFound(err) {
		return nil // a lease may come before its node, and is nobody's then
	}
	if err != nil {
		return err
	}
	node, err := nodeKind.Decode(stored.Body.Bytes())
	if err != nil {
		return err
	}
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: req.Name, UID: node.GetUID()}
	if owners := req.Obj.GetOwnerReferences(); !slices.Contains(owners, owner) {
		req.Obj.SetOwnerReferences(append(owners, owner))
	}
	return nil
}

func ofNode(req objects.Request) bool {
	switch req.Kind.Kind {
	case "Lease":
		return req.Namespace == corev1.NamespaceNodeLease
	case "NodeHardware":
		return true
	}
	return false
}
