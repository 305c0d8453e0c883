package auth

import (
	"context"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bramble.dev/bramble/server/api"
)

// Revoke serves api.RevokePath: a node's key ends, and with it its connections,
// requests and renewals. Whoever may call it was decided before.
func (e *Enrolment) Revoke(w http.ResponseWriter, r *http.Request) {
	serve(w, r, e.Log, func(in api.RevokeRequest) (any, int, error) {
		out, err := e.revoke(r.Context(), in.NodeName)
		return out, http.StatusCreated, err
	})
}

func (e *Enrolment) revoke(ctx context.Context, node string) (*api.RevokeResponse, error) {
	if err := checkNodeName(node); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	exists, err := e.Nodes.NodeExists(ctx, node)
	if err != nil {
		return nil, err
	}
	if !exists && !e.Keys.knows(node) {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, node)
	}
	now := e.Clock.Now()
	if err := e.Keys.revoke(ctx, node, now); err != nil {
		return nil, fmt.Errorf("cannot revoke node %s: %w", node, err)
	}
	if e.OnReplaced != nil {
		e.OnReplaced(node)
	}
	e.Log.Info("node revoked", "node", node)
	if err := e.Nodes.MarkRevoked(ctx, node, now); err != nil {
		return nil, fmt.Errorf("cannot mark node %s, which is revoked: %w", node, err)
	}
	return &api.RevokeResponse{NodeName: node, Revoked: now.Format(time.RFC3339)}, nil
}
