package nodes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hearing is what is known of a node's lease.
type hearing uint8

const (
	young  hearing = iota // the node was created a short while ago, and not heard
	silent                // not heard since this server started, a short while ago
	heard                 // within the grace period
	lost                  // not heard for the grace period
)

// Reasons and messages of the conditions, which are Kubernetes' own.
const (
	reasonStopped = "NodeStatusUnknown"
	reasonNever   = "NodeStatusNeverUpdated"
	stopped       = "Kubelet stopped posting node status."
	never         = "Kubelet never posted node status."
)

// watched are the conditions that mean nothing while a node is not heard.
// Ready is there in any case.
func watched() []corev1.NodeConditionType {
	return []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure}
}

// setUnknown makes the conditions of a node that is not heard Unknown, from
// now on; the others and those that are Unknown already stay as they are.
func setUnknown(n *corev1.Node, now metav1.Time) {
	for _, kind := range watched() {
		c := condition(n, kind)
		switch {
		case c == nil && kind == corev1.NodeReady:
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
				Type: kind, Status: corev1.ConditionUnknown, Reason: reasonNever, Message: never, LastTransitionTime: now,
			})
		case c != nil && c.Status != corev1.ConditionUnknown:
			c.Status, c.Reason, c.Message, c.LastTransitionTime = corev1.ConditionUnknown, reasonStopped, stopped, now
		}
	}
}

// mustBeUnknown reports whether setUnknown is to be called.
func mustBeUnknown(n *corev1.Node, h hearing) bool {
	return (h == silent || h == lost) && ready(n) != corev1.ConditionUnknown
}

// wantedTaints returns the taints of n as they should be: those of others as
// they are, ours by what is known of the node. One that is there keeps the time
// when it was added.
func wantedTaints(n *corev1.Node, h hearing, now metav1.Time) []corev1.Taint {
	key, effects := ourTaints(ready(n), h)
	var taints []corev1.Taint
	for _, t := range n.Spec.Taints {
		if !ours(t.Key) {
			taints = append(taints, t)
			continue
		}
		// What came of an earlier loss stays until the node is heard.
		lost := h == silent && t.Key == corev1.TaintNodeUnreachable
		if i := slices.Index(effects, t.Effect); i >= 0 && t.Key == key {
			effects = slices.Delete(effects, i, i+1)
			taints = append(taints, t)
		} else if lost {
			taints = append(taints, t)
		}
	}
	for _, e := range effects {
		taints = append(taints, corev1.Taint{Key: key, Effect: e, TimeAdded: &now})
	}
	return taints
}

// ourTaints follows Kubernetes: not-ready for what the node says itself or has
// not said yet, unreachable for what it does not say any more.
func ourTaints(r corev1.ConditionStatus, h hearing) (key string, effects []corev1.TaintEffect) {
	both := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute}
	switch {
	case h == lost:
		return corev1.TaintNodeUnreachable, both
	case h == silent:
		return corev1.TaintNodeUnreachable, both[:1]
	case r == corev1.ConditionTrue:
		return "", nil
	case r == corev1.ConditionFalse:
		return corev1.TaintNodeNotReady, both
	case r == corev1.ConditionUnknown: // heard, and about to report
		return corev1.TaintNodeUnreachable, both[:1]
	}
	return corev1.TaintNodeNotReady, both[:1]
}

func ours(key string) bool {
	return key == corev1.TaintNodeUnreachable || key == corev1.TaintNodeNotReady
}

func sameTaints(a, b []corev1.Taint) bool { return equality.Semantic.DeepEqual(a, b) }

// ready is the node's condition Ready; "" if there is none.
func ready(n *corev1.Node) corev1.ConditionStatus {
	if c := condition(n, corev1.NodeReady); c != nil {
		return c.Status
	}
	return ""
}

func condition(n *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == kind {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}
