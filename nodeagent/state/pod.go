package state

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
)

// Pod is the node's record of one of its pods.
type Pod struct {
	Pod        *corev1.Pod         `json:"pod"`
	Address    netip.Addr          `json:"address"`
	Failover   string              `json:"failover"` // api.FailoverKeep, FailoverMove or FailoverExclusive
	ConfigMaps []*corev1.ConfigMap `json:"configMaps,omitempty"`
	Secrets    []*corev1.Secret    `json:"secrets,omitempty"`
}

// over reports whether the pod has ended for good.
func (p *Pod) over() bool {
	return p.Pod.Status.Phase == corev1.PodSucceeded || p.Pod.Status.Phase == corev1.PodFailed
}

// Trim returns the pod as it is kept: without what changes at each write and is
// of no use to the node. Of the status only the start and a final phase stay.
func Trim(pod *corev1.Pod) *corev1.Pod {
	kept := pod.DeepCopy()
	kept.ManagedFields = nil
	kept.ResourceVersion = ""
	kept.Status = corev1.PodStatus{StartTime: pod.Status.StartTime, QOSClass: pod.Status.QOSClass}
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		kept.Status.Phase, kept.Status.Reason, kept.Status.Message = pod.Status.Phase, pod.Status.Reason, pod.Status.Message
	}
	return kept
}
