package kinds

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"bramble.dev/bramble/server/admission"
	"bramble.dev/bramble/server/objects"
)

func node() *objects.Kind {
	return &objects.Kind{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Node"),
		Plural:           "nodes", Singular: "node", ShortNames: []string{"no"},
		New:     func() objects.Object { return &corev1.Node{} },
		NewList: func() runtime.Object { return &corev1.NodeList{} },

		FieldNames: []string{"spec.unschedulable"},
		Fields: func(obj objects.Object) fields.Set {
			return fields.Set{"spec.unschedulable": strconv.FormatBool(obj.(*corev1.Node).Spec.Unschedulable)}
		},
		Strategy: objects.Strategy{
			Default:        on(admission.DefaultNode),
			PrepareCreate:  on(admission.PrepareNode),
			PrepareUpdate:  onBoth(admission.PrepareNodeUpdate),
			Validate:       check(admission.ValidateNode),
			ValidateUpdate: checkBoth(admission.ValidateNodeUpdate),
		},
		Subresources: []objects.Subresource{{
			Name: "status", Verbs: statusVerbs(),
			Update:   onBoth(func(obj, into *corev1.Node) { into.Status = obj.Status }),
			Validate: checkBoth(admission.ValidateNodeStatus),
		}, {
			Name: "proxy", Verbs: []string{"get"}, GroupVersionKind: corev1.SchemeGroupVersion.WithKind("NodeProxyOptions"),
		}},

		Columns: []metav1.TableColumnDefinition{
			column("Status", "string", "The status of the node"),
			column("Roles", "string", "The roles of the node"),
			column("Age", "string", "Time since the node joined"),
			column("Version", "string", "The version of the node's agent"),
			wide("Internal-IP", "string", "The node's address in its own network"),
			wide("External-IP", "string", "The node's address for others"),
			wide("OS-Image", "string", "The operating system"),
			wide("Kernel-Version", "string", "The kernel's version"),
			wide("Container-Runtime", "string", "What runs the containers"),
		},
		NoAge: true, // it is not the last one here
		Row:   nodeRow,
	}
}

func nodeRow(obj objects.Object, now time.Time) []any {
	n := obj.(*corev1.Node)
	info := &n.Status.NodeInfo
	return []any{
		nodeStatus(n), nodeRoles(n), since(n.CreationTimestamp.Time, now), info.KubeletVersion,
		nodeAddress(n, corev1.NodeInternalIP), nodeAddress(n, corev1.NodeExternalIP),
		orElse(info.OSImage, "<unknown>"), orElse(info.KernelVersion, "<unknown>"), orElse(info.ContainerRuntimeVersion, "<unknown>"),
	}
}

// nodeStatus is Ready, NotReady (also when the server has not heard of it for
// long) or Unknown (when there is no condition), and whether it is cordoned.
func nodeStatus(n *corev1.Node) string {
	status := "Unknown"
	for _, c := range n.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		status = "NotReady"
		if c.Status == corev1.ConditionTrue {
			status = "Ready"
		}
	}
	if n.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

func nodeRoles(n *corev1.Node) string {
	var roles []string
	for key, value := range n.Labels {
		if role, ok := strings.CutPrefix(key, "node-role.kubernetes.io/"); ok && role != "" {
			roles = append(roles, role)
		} else if key == "kubernetes.io/role" && value != "" {
			roles = append(roles, value)
		}
	}
	slices.Sort(roles)
	return orElse(strings.Join(slices.Compact(roles), ","), "<none>")
}

func nodeAddress(n *corev1.Node, kind corev1.NodeAddressType) string {
	for _, a := range n.Status.Addresses {
		if a.Type == kind {
			return a.Address
		}
	}
	return "<none>"
}
