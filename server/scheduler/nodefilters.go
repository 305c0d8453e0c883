package scheduler

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
)

// Cordon wants a node that is not cordoned, unless the pod tolerates that.
type Cordon struct{}

// Name implements Filter.
func (Cordon) Name() string { return "NodeUnschedulable" }

// Cures implements Filter.
func (Cordon) Cures(c Cause) bool { return c.ofNodes() }

// Prepare implements Filter.
func (Cordon) Prepare(_ *Snapshot, p *Pod) Check {
	taint := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if tolerates(p, &taint) {
		return nil
	}
	return checkFunc(func(n *Node) []Reason {
		if n.Spec.Unschedulable {
			return []Reason{{"was cordoned", "were cordoned"}}
		}
		return nil
	})
}

// Taints wants a node without taints that the pod does not tolerate.
type Taints struct{}

// Name implements Filter.
func (Taints) Name() string { return "TaintToleration" }

// Cures implements Filter.
func (Taints) Cures(c Cause) bool { return c.ofNodes() }

// Prepare implements Filter.
func (Taints) Prepare(_ *Snapshot, p *Pod) Check {
	return checkFunc(func(n *Node) []Reason { return untolerated(p, n) })
}

// untolerated leaves out PreferNoSchedule, which keeps no pod away.
func untolerated(p *Pod, n *Node) []Reason {
	var reasons []Reason
	for i := range n.Spec.Taints {
		t := &n.Spec.Taints[i]
		switch {
		case t.Effect == corev1.TaintEffectPreferNoSchedule, tolerates(p, t):
		case t.Key == corev1.TaintNodeUnschedulable && n.Spec.Unschedulable: // Cordon says so
		default:
			if r := taintReason(t); !slices.Contains(reasons, r) {
				reasons = append(reasons, r)
			}
		}
	}
	return reasons
}

// taintReason has words of its own for the taints that the server itself sets.
func taintReason(t *corev1.Taint) Reason {
	switch t.Key {
	case corev1.TaintNodeUnreachable:
		return Reason{"was out of reach", "were out of reach"}
	case corev1.TaintNodeNotReady:
		return Reason{"was not ready", "were not ready"}
	}
	return same("had the taint " + t.ToString())
}

func tolerates(p *Pod, t *corev1.Taint) bool {
	return helpers.TolerationsTolerateTaint(klog.Logger{}, p.Spec.Tolerations, t, false)
}

// NodeName wants the node that the pod names, if it names one.
type NodeName struct{}

// Name implements Filter.
func (NodeName) Name() string { return "NodeName" }

// Cures implements Filter.
func (NodeName) Cures(c Cause) bool { return c == NodeCame }

// Prepare implements Filter.
func (NodeName) Prepare(_ *Snapshot, p *Pod) Check {
	if p.Spec.NodeName == "" {
		return nil
	}
	return checkFunc(func(n *Node) []Reason {
		if p.Spec.NodeName == n.Name {
			return nil
		}
		return []Reason{{"was not the one that the pod names", "were not the one that the pod names"}}
	})
}
