package server

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/objects"
)

// kept are the namespaces that Kubernetes always has. Nodes' Leases lie in one
// of them, so that without it every node would soon be Unknown.
func kept() []string {
	return []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease}
}

// keptNamespaces is the part of the admission chain that lets nobody delete them.
type keptNamespaces struct{}

func (keptNamespaces) Admit(_ context.Context, req objects.Request) error {
	if req.Verb == "delete" && req.Kind.Resource() == "namespaces" && slices.Contains(kept(), req.Name) {
		return errors.New("this namespace may not be deleted; delete what is in it instead")
	}
	return nil
}

// createNamespaces makes those that are missing.
func createNamespaces(ctx context.Context, registry *objects.Registry) error {
	kind, ok := registry.Kind("", "namespaces")
	if !ok {
		return errors.New("cannot create the default namespaces: the kind is not served")
	}
	for _, name := range kept() {
		if _, err := registry.Get(ctx, kind, "", name); err == nil {
			continue
		}
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := registry.Create(ctx, kind, "", ns, objects.WriteOptions{FieldManager: manager})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("cannot create namespace %s: %w", name, err)
		}
	}
	return nil
}
