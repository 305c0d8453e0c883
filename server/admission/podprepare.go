package admission

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PreparePod clears what a client may not set of a new pod.
func PreparePod(p *corev1.Pod) {
	p.Generation = 1
	p.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: QOSClass(p)}
	setGated(p)
	mergeLabelKeys(p)
}

// PreparePodUpdate keeps the status, which has a subresource of its own, and the
// priority where the client does not say one.
func PreparePodUpdate(p, old *corev1.Pod) {
	p.Status = old.Status
	if p.Spec.Priority == nil {
		p.Spec.Priority = old.Spec.Priority
	}
	if p.Spec.PreemptionPolicy == nil {
		p.Spec.PreemptionPolicy = old.Spec.PreemptionPolicy
	}
}

// PreparePodStatus takes the status over into p, a copy of the stored pod. The
// class of service is the server's, and what the scheduler wrote is kept when
// an agent's report does not know it.
func PreparePodStatus(p *corev1.Pod, status corev1.PodStatus) {
	scheduled := condition(p.Status.Conditions, corev1.PodScheduled)
	qos := p.Status.QOSClass
	p.Status = status
	p.Status.QOSClass = qos
	if scheduled != nil && condition(status.Conditions, corev1.PodScheduled) == nil {
		p.Status.Conditions = append([]corev1.PodCondition{*scheduled}, status.Conditions...)
	}
}

// BindPod writes into p that it is placed on node, from now on.
func BindPod(p *corev1.Pod, node string, now metav1.Time) {
	p.Spec.NodeName = node
	p.Status.NominatedNodeName = ""
	SetPodCondition(&p.Status, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue, ObservedGeneration: p.Generation,
	}, now)
}

// SetPodCondition puts c into s. The time of transition is now if the
// condition's status changes, else what it was.
func SetPodCondition(s *corev1.PodStatus, c corev1.PodCondition, now metav1.Time) {
	c.LastTransitionTime = now
	old := condition(s.Conditions, c.Type)
	if old == nil {
		s.Conditions = append(s.Conditions, c)
		return
	}
	if old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	*old = c
}

func condition(conditions []corev1.PodCondition, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range conditions {
		if conditions[i].Type == t {
			return &conditions[i]
		}
	}
	return nil
}

// QOSClass is the class of service that Kubernetes derives from requests and
// limits of CPU and memory: Guaranteed if every container has both limits and
// requests equal to them, BestEffort if none has any, else Burstable.
func QOSClass(p *corev1.Pod) corev1.PodQOSClass {
	some, all := false, true
	for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range containers {
			r := &containers[i].Resources
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				request, limit := r.Requests[name], r.Limits[name]
				some = some || !request.IsZero() || !limit.IsZero()
				all = all && !limit.IsZero() && request.Cmp(limit) == 0
			}
		}
	}
	switch {
	case !some:
		return corev1.PodQOSBestEffort
	case all:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}
