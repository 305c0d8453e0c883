package auth

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/fields"

	"bramble.dev/bramble/server/api"
)

// Pods knows which pods run where and what they use; see PodIndex.
type Pods interface {
	// NodeOf returns the node of a pod, "" while it has none; false if there is
	// no such pod.
	NodeOf(ctx context.Context, namespace, name string) (node string, exists bool, err error)
	// Uses reports whether a pod of the node uses the ConfigMap, Secret or
	// ServiceAccount (resource "configmaps", "secrets" or "serviceaccounts").
	Uses(ctx context.Context, node, resource, namespace, name string) (bool, error)
}

// Authorizer lets administrators (system:masters) do everything, nodes what they
// must, and everybody what the roles say that are bound to them. It is safe for
// concurrent use.
type Authorizer struct {
	pods  Pods
	rules *RBAC
}

// NewAuthorizer returns an Authorizer that asks pods what nodes may touch, and
// rules (nil: there are none) what others may.
func NewAuthorizer(pods Pods, rules *RBAC) *Authorizer { return &Authorizer{pods, rules} }

// Authorize says whether the user may do it, and why or why not.
func (z *Authorizer) Authorize(ctx context.Context, a Attributes) (allowed bool, reason string, err error) {
	if a.User.InGroup(api.GroupMasters) {
		return true, "", nil
	}
	refusal := ""
	if node, ok := a.User.Node(); ok && a.Path == "" {
		if allowed, refusal, err = z.node(ctx, node, a); allowed || err != nil {
			return allowed, "", err
		}
	}
	if z.rules == nil {
		return false, refusal, nil
	}
	allowed, reason, err = z.rules.Allows(ctx, a)
	if !allowed && refusal != "" {
		reason = refusal
	}
	return allowed, reason, err
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
	case a.Group == "" && a.Resource == "serviceaccounts":
		return z.account(ctx, node, a)
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

// account lets a node read the service accounts of its pods and get tokens for
// them. That a token is bound to such a pod is for who makes it to check.
func (z *Authorizer) account(ctx context.Context, node string, a Attributes) (bool, string, error) {
	const reason = "a node may use only the service accounts of its pods"
	if a.Name == "" || (a.Verb != "get" || a.Subresource != "") && (a.Verb != "create" || a.Subresource != "token") {
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
