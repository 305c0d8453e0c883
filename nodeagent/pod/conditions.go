package pod

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conditions are those that the node owns, with the kubelet's reasons.
func conditions(d Desired, o Observed, st corev1.PodStatus) []corev1.PodCondition {
	sandbox := corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse}
	if o.Attached && o.Engine.Running && !terminal(st.Phase) {
		sandbox.Status = corev1.ConditionTrue
	}
	containersReady := readiness(d, st)
	containersReady.Type = corev1.ContainersReady
	before := o.Conditions
	if before == nil {
		before = d.Pod.Status.Conditions
	}
	all := []corev1.PodCondition{sandbox, initialization(d, o, st), gated(d, containersReady), containersReady}
	for i := range all {
		all[i].ObservedGeneration = d.Pod.Generation
		all[i].LastTransitionTime = metav1.NewTime(o.Now.Round(0).Truncate(time.Second))
		for _, old := range before {
			if old.Type == all[i].Type && old.Status == all[i].Status {
				all[i].LastTransitionTime = old.LastTransitionTime
			}
		}
	}
	return all
}

// initialization is the kubelet's GeneratePodInitializedCondition.
func initialization(d Desired, o Observed, st corev1.PodStatus) corev1.PodCondition {
	c := corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}
	if st.Phase == corev1.PodSucceeded {
		c.Reason = "PodCompleted"
		return c
	}
	if initialized(d.Pod, o) {
		return c
	}
	var missing []string
	for _, m := range members(d.Pod) {
		if m.role != ordinary && !served(m, o) {
			missing = append(missing, m.spec.Name)
		}
	}
	c.Status, c.Reason = corev1.ConditionFalse, "ContainersNotInitialized"
	c.Message = fmt.Sprintf("containers with incomplete status: [%s]", strings.Join(missing, " "))
	return c
}

// readiness is the kubelet's GenerateContainersReadyCondition.
func readiness(d Desired, st corev1.PodStatus) corev1.PodCondition {
	switch st.Phase {
	case corev1.PodSucceeded:
		return corev1.PodCondition{Status: corev1.ConditionFalse, Reason: "PodCompleted"}
	case corev1.PodFailed:
		return corev1.PodCondition{Status: corev1.ConditionFalse, Reason: "PodFailed"}
	}
	var unready []string
	for _, m := range members(d.Pod) {
		for _, all := range [][]corev1.ContainerStatus{st.InitContainerStatuses, st.ContainerStatuses} {
			for i := range all {
				if m.role != initial && all[i].Name == m.spec.Name && !all[i].Ready {
					unready = append(unready, m.spec.Name)
				}
			}
		}
	}
	if len(unready) > 0 || len(d.Pod.Spec.Containers) == 0 {
		return corev1.PodCondition{
			Status: corev1.ConditionFalse, Reason: "ContainersNotReady",
			Message: fmt.Sprintf("containers with unready status: [%s]", strings.Join(unready, " ")),
		}
	}
	return corev1.PodCondition{Status: corev1.ConditionTrue}
}

// gated is the condition Ready: the containers', and of a pod with readiness
// gates the conditions that others set (the kubelet's GeneratePodReadyCondition).
func gated(d Desired, ready corev1.PodCondition) corev1.PodCondition {
	ready.Type = corev1.PodReady
	if ready.Status != corev1.ConditionTrue {
		return ready
	}
	var closed []string
	for _, gate := range d.Pod.Spec.ReadinessGates {
		words := fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType)
		for _, c := range d.Pod.Status.Conditions {
			if c.Type == gate.ConditionType {
				words = ""
				if c.Status != corev1.ConditionTrue {
					words = fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", gate.ConditionType, c.Status)
				}
			}
		}
		if words != "" {
			closed = append(closed, words)
		}
	}
	if len(closed) > 0 {
		ready.Status, ready.Reason, ready.Message = corev1.ConditionFalse, "ReadinessGatesNotReady", strings.Join(closed, ", ")
	}
	return ready
}
