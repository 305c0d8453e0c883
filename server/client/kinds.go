package client

import (
	"context"
	"encoding/json"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bramble.dev/bramble/server/api"
)

// Patch is a change of part of an object.
type Patch struct {
	Type types.PatchType
	Body []byte
}

// MergePatch returns the JSON merge patch (RFC 7386) that v encodes to.
func MergePatch(v any) (Patch, error) { return encodePatch(types.MergePatchType, v) }

// StrategicPatch returns the strategic merge patch that v encodes to: lists with
// merge keys, such as conditions, are merged by element.
func StrategicPatch(v any) (Patch, error) { return encodePatch(types.StrategicMergePatchType, v) }

func encodePatch(t types.PatchType, v any) (Patch, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return Patch{}, fmt.Errorf("cannot encode a patch: %w", err)
	}
	return Patch{Type: t, Body: body}, nil
}

// GetNode reads a Node.
func (c *Client) GetNode(ctx context.Context, name string) (*corev1.Node, error) {
	return get[corev1.Node](ctx, c.core, "nodes", "", name)
}

// CreateNode registers a Node.
func (c *Client) CreateNode(ctx context.Context, n *corev1.Node) (*corev1.Node, error) {
	return create(ctx, c.core, "nodes", n)
}

// UpdateNode replaces a Node but for its status.
func (c *Client) UpdateNode(ctx context.Context, n *corev1.Node) (*corev1.Node, error) {
	return update(ctx, c.core, "nodes", "", n)
}

// PatchNode changes a Node but for its status.
func (c *Client) PatchNode(ctx context.Context, name string, p Patch) (*corev1.Node, error) {
	return patch[corev1.Node](ctx, c.core, "nodes", "", "", name, p)
}

// PatchNodeStatus changes a Node's status.
func (c *Client) PatchNodeStatus(ctx context.Context, name string, p Patch) (*corev1.Node, error) {
	return patch[corev1.Node](ctx, c.core, "nodes", "status", "", name, p)
}

// GetPod reads a Pod.
func (c *Client) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	return get[corev1.Pod](ctx, c.core, "pods", namespace, name)
}

// PatchPodStatus changes a Pod's status. A patch that carries metadata.uid
// fails with a conflict when the pod is another of the same name.
func (c *Client) PatchPodStatus(ctx context.Context, namespace, name string, p Patch) (*corev1.Pod, error) {
	return patch[corev1.Pod](ctx, c.core, "pods", "status", namespace, name, p)
}

// DeletePod deletes a Pod. A node does so with grace period 0 and the UID as a
// precondition, once the pod's containers are gone.
func (c *Client) DeletePod(ctx context.Context, namespace, name string, opts metav1.DeleteOptions) error {
	return c.core.Delete().Namespace(namespace).Resource("pods").Name(name).Body(&opts).Do(ctx).Error()
}

// GetConfigMap reads a ConfigMap that a pod of this node uses.
func (c *Client) GetConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return get[corev1.ConfigMap](ctx, c.core, "configmaps", namespace, name)
}

// GetSecret reads a Secret that a pod of this node uses.
func (c *Client) GetSecret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return get[corev1.Secret](ctx, c.core, "secrets", namespace, name)
}

// GetLease reads this node's Lease.
func (c *Client) GetLease(ctx context.Context, node string) (*coordinationv1.Lease, error) {
	return get[coordinationv1.Lease](ctx, c.leases, "leases", api.NamespaceNodeLeases, node)
}

// CreateLease creates this node's Lease.
func (c *Client) CreateLease(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return create(ctx, c.leases, "leases", l)
}

// UpdateLease renews this node's Lease.
func (c *Client) UpdateLease(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return update(ctx, c.leases, "leases", "", l)
}

// CreateEvent records an Event.
func (c *Client) CreateEvent(ctx context.Context, e *corev1.Event) (*corev1.Event, error) {
	return create(ctx, c.core, "events", e)
}

// PatchEvent changes an Event, usually its count and last time.
func (c *Client) PatchEvent(ctx context.Context, namespace, name string, p Patch) (*corev1.Event, error) {
	return patch[corev1.Event](ctx, c.core, "events", "", namespace, name, p)
}

// GetNodeHardware reads what is reported of a node's board.
func (c *Client) GetNodeHardware(ctx context.Context, name string) (*api.NodeHardware, error) {
	return get[api.NodeHardware](ctx, c.own, "nodehardwares", "", name)
}

// CreateNodeHardware begins to report this node's board.
func (c *Client) CreateNodeHardware(ctx context.Context, h *api.NodeHardware) (*api.NodeHardware, error) {
	return create(ctx, c.own, "nodehardwares", h)
}

// PatchNodeHardwareStatus reports the board anew.
func (c *Client) PatchNodeHardwareStatus(ctx context.Context, name string, p Patch) (*api.NodeHardware, error) {
	return patch[api.NodeHardware](ctx, c.own, "nodehardwares", "status", "", name, p)
}
