package auth

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"

	"bramble.dev/bramble/server/api"
)

// Pods knows which pods run where and what they use; see PodIndex.
type Pods interface {
	// NodeOf returns the node of a pod, "" while it has none; false if there is
	// no such pod.
	NodeOf(ctx context.Context, namespace, name string) (node string, exists bool, err error)
	// Uses reports whether a pod of the node uses the ConfigMap or Secret
	// (resource "configmaps" or "secrets").
	Uses(ctx context.Context, node, resource, namespace, name string) (bool, error)
}

// Authorizer lets administrators (system:masters) do everything and nodes what
// they must. Everybody who is known may read discovery, OpenAPI, version and
// health. It is safe for concurrent use.
type Authorizer struct {
	pods Pods
}

// NewAuthorizer returns an Authorizer that asks pods what nodes may touch.
func NewAuthorizer(pods Pods) *Authorizer { return &Authorizer{pods: pods} }

// Authorize says whether the user may do it, and if not why.
func (z *Authorizer) Authorize(ctx context.Context, a Attributes) (allowed bool, reason string, err error) {
	if a.User.InGroup(api.GroupMasters) {
		return true, "", nil
	}
	if a.Path != "" {
		if a.User.InGroup(api.GroupAuthenticated) && a.Verb == "get" && isInformative(a.Path) {
			return true, "", nil
		}
		return false, "", nil
	}
	node, ok := a.User.Node()
	if !ok {
		return false, "", nil
	}
	return z.node(ctx, node, a)
}

// isInformative says whether path is what Kubernetes' role system:discovery
// lets everybody read.
func isInformative(path string) bool {
	path = strings.TrimSuffix(path, "/")
	switch path {
	case "", "/version", "/livez", "/readyz", "/healthz", "/api", "/apis", "/openapi":
		return true
	}
	for _, prefix := range []string{"/api/", "/apis/", "/openapi/", "/livez/", "/readyz/", "/healthz/"} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}

// node decides as Kubernetes' node authorizer does, only stricter: a node sees
// and touches nothing of another's.
func (z *Authorizer) node(ctx context.Context, node string, a Attributes) (bool, string, error) {
	switch {
	case a.Group == "" && a.Resource == "nodes":
		return ownObject(node, a, "a node may touch only its own Node", "status")
	case a.Group == "coordination.k8s.io" && a.Resource == "leases":
		if a.Namespace != api.NamespaceNodeLeases {
			return false, "a node may touch only its own Lease in " + api.NamespaceNodeLeases, nil
		}
		return ownObject(node, a, "a node may touch only its own Lease")
	case a.Group == api.Group && a.Resource == "nodehardwares":
		return ownObject(node, a, "a node may touch only its own NodeHardware", "status")
	case a.Group == "" && a.Resource == "pods":
		return z.pod(ctx, node, a)
	case a.Group == "" && (a.Resource == "configmaps" || a.Resource == "secrets"):
		return z.content(ctx, node, a)
	case a.Group == "" && a.Resource == "events" && a.Subresource == "":
		// About what an event may be is the NodeRestriction's.
		return slices.Contains([]string{"create", "update", "patch"}, a.Verb), "a node may only write events", nil
	}
	return false, "", nil
}

// ownObject decides on the kinds of which a node has one, named as itself. The
// name of what is created is checked by the NodeRestriction: it is in the body.
func ownObject(node string, a Attributes, reason string, subresources ...string) (bool, string, error) {
	if a.Subresource != "" && !slices.Contains(subresources, a.Subresource) {
		return false, reason, nil
	}
	switch a.Verb {
	case "create":
		return a.Subresource == "" && (a.Name == "" || a.Name == node), reason, nil
	case "get", "update", "patch":
		return a.Name == node, reason, nil
	case "list", "watch":
		return selects(a, "metadata.name", node), reason + ": select it by metadata.name=" + node, nil
	}
	return false, reason, nil
}

func (z *Authorizer) pod(ctx context.Context, node string, a Attributes) (bool, string, error) {
	const reason = "a node may touch only the pods that are bound to it"
	switch {
	case a.Verb == "list" || a.Verb == "watch":
		return a.Subresource == "" && selects(a, "spec.nodeName", node), reason + ": select them by spec.nodeName=" + node, nil
	case a.Name == "":
		return false, reason, nil
	case a.Subresource == "" && (a.Verb == "get" || a.Verb == "delete"):
	case a.Subresource == "status" && (a.Verb == "get" || a.Verb == "update" || a.Verb == "patch"):
	default:
		return false, reason, nil
	}
	at, exists, err := z.pods.NodeOf(ctx, a.Namespace, a.Name)
	if err != nil {
		return false, "", err
	}
	return !exists || at == node, reason, nil // one that is gone gets its 404
}

func (z *Authorizer) content(ctx context.Context, node string, a Attributes) (bool, string, error) {
	const reason = "a node may read only the ConfigMaps and Secrets that its pods use, by name"
	if a.Verb != "get" || a.Subresource != "" || a.Name == "" {
		return false, reason, nil
	}
	used, err := z.pods.Uses(ctx, node, a.Resource, a.Namespace, a.Name)
	return used, reason, err
}

// selects says whether a's field selector requires field to be value.
func selects(a Attributes, field, value string) bool {
	s, err := fields.ParseSelector(a.Fields)
	if err != nil {
		return false
	}
	got, ok := s.RequiresExactMatch(field)
	return ok && got == value
}
