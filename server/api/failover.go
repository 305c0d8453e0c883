package api

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Failover is a pod's policy when its node is out of reach: as annotated, else
// keep for bare pods and a DaemonSet's, and move for other controllers' pods.
// An annotation of an unknown value counts as keep, which moves nothing.
func Failover(pod *corev1.Pod) string {
	switch policy := pod.Annotations[AnnotationFailover]; policy {
	case FailoverKeep, FailoverMove, FailoverExclusive:
		return policy
	case "":
	default:
		return FailoverKeep
	}
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind == "DaemonSet" {
		return FailoverKeep
	}
	return FailoverMove
}
