package auth

import (
	"context"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bramble.dev/bramble/server/api"
)

// Object is a typed Kubernetes object.
type Object interface {
	runtime.Object
	metav1.Object
}

// Write is a write as admission sees it.
type Write struct {
	Verb        string // create, update or delete
	Subresource string
	Obj, Old    Object // Obj is nil for delete, Old for create
}

// NodeRestriction is the part of a node's limits that depends on what it writes;
// the Authorizer has the rest. Other users pass. It is safe for concurrent use.
type NodeRestriction struct {
	pods Pods
	keys *NodeKeys
}

// NewNodeRestriction returns a NodeRestriction.
func NewNodeRestriction(pods Pods, keys *NodeKeys) *NodeRestriction {
	return &NodeRestriction{pods: pods, keys: keys}
}

// Admit returns why a node may not write this, or nil. A Node that a node
// creates without podCIDR gets that which it was given when it joined.
func (n *NodeRestriction) Admit(ctx context.Context, w Write) error {
	user, _ := api.UserFrom(ctx)
	name, isNode := user.Node()
	if !isNode {
		return nil
	}
	obj := w.Obj
	if obj == nil {
		obj = w.Old
	}
	switch obj := obj.(type) {
	case *corev1.Node:
		return n.node(ctx, name, w, obj)
	case *corev1.Pod:
		return ownPod(name, w, obj)
	case *corev1.Event:
		return n.event(ctx, name, w, obj)
	case *coordinationv1.Lease, *api.NodeHardware:
		if obj.GetName() != name {
			return fmt.Errorf("node %s may not write %s, which is another's", name, obj.GetName())
		}
		return nil
	}
	return fmt.Errorf("node %s may not write a %T", name, obj)
}

func (n *NodeRestriction) node(ctx context.Context, name string, w Write, obj *corev1.Node) error {
	if obj.Name != name {
		return fmt.Errorf("node %s may not write node %s", name, obj.Name)
	}
	if w.Verb == "delete" {
		return fmt.Errorf("node %s may not delete itself", name)
	}
	old, _ := w.Old.(*corev1.Node)
	if old == nil {
		old = &corev1.Node{Spec: corev1.NodeSpec{Taints: obj.Spec.Taints}} // its own taints it may begin with
		cidr, err := n.keys.adopt(ctx, name)
		if err != nil {
			return err
		}
		old.Spec.PodCIDR, old.Spec.PodCIDRs = cidr, []string{cidr}
		if obj.Spec.PodCIDR == "" {
			obj.Spec.PodCIDR, obj.Spec.PodCIDRs = cidr, []string{cidr}
		}
	}
	switch {
	case w.Subresource != "":
		return nil
	case !equality.Semantic.DeepEqual(obj.Spec.Taints, old.Spec.Taints):
		return fmt.Errorf("node %s may not change its taints", name)
	case obj.Spec.PodCIDR != old.Spec.PodCIDR || !equality.Semantic.DeepEqual(obj.Spec.PodCIDRs, old.Spec.PodCIDRs):
		return fmt.Errorf("node %s may not change its podCIDR from %q to %q", name, old.Spec.PodCIDR, obj.Spec.PodCIDR)
	case obj.Spec.Unschedulable != old.Spec.Unschedulable:
		return fmt.Errorf("node %s may not change whether it is schedulable", name)
	case !equality.Semantic.DeepEqual(obj.OwnerReferences, old.OwnerReferences):
		return fmt.Errorf("node %s may not change its owners", name)
	}
	if label := changedLabel(obj.Labels, old.Labels); label != "" {
		return fmt.Errorf("node %s may not set its label %s: it is the administrator's", name, label)
	}
	return nil
}

// changedLabel returns a label that differs and is not a node's to set.
func changedLabel(a, b map[string]string) string {
	for _, pair := range [2][2]map[string]string{{a, b}, {b, a}} {
		for label, value := range pair[0] {
			if other, ok := pair[1][label]; (!ok || other != value) && isRestricted(label) {
				return label
			}
		}
	}
	return ""
}

// isRestricted says that a label is not a node's. Of Kubernetes' domains and ours a node
// may set those alone that say what it is; others are free, as in Kubernetes'
// NodeRestriction.
func isRestricted(label string) bool {
	domain, _, ok := strings.Cut(label, "/")
	if !ok {
		return false
	}
	for _, reserved := range []string{"kubernetes.io", "k8s.io", api.Group} {
		if domain == reserved || strings.HasSuffix(domain, "."+reserved) {
			return !api.IsNodesLabel(label)
		}
	}
	return false
}

// ownPod lets a node write the status of its pods and delete them.
func ownPod(name string, w Write, obj *corev1.Pod) error {
	at := obj.Spec.NodeName
	if old, ok := w.Old.(*corev1.Pod); ok {
		at = old.Spec.NodeName
	}
	if at != name {
		return fmt.Errorf("node %s may not write pod %s, which is not bound to it", name, obj.Name)
	}
	if w.Verb == "delete" || w.Verb == "update" && w.Subresource == "status" {
		return nil
	}
	return fmt.Errorf("node %s may write only the status of pod %s", name, obj.Name)
}

// event lets a node write events about itself and its pods. A pod that is gone
// is nobody's any more.
func (n *NodeRestriction) event(ctx context.Context, name string, w Write, obj *corev1.Event) error {
	about := []corev1.ObjectReference{obj.InvolvedObject}
	if old, ok := w.Old.(*corev1.Event); ok {
		about = append(about, old.InvolvedObject)
	}
	for _, ref := range about {
		switch ref.Kind {
		case "Node":
			if ref.Name == name {
				continue
			}
		case "Pod":
			at, exists, err := n.pods.NodeOf(ctx, ref.Namespace, ref.Name)
			if err != nil {
				return err
			}
			if !exists || at == name {
				continue
			}
		}
		return fmt.Errorf("node %s may not write events about %s %s", name, strings.ToLower(ref.Kind), ref.Name)
	}
	return nil
}
