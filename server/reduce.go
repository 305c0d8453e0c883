package server

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/objects"
)

// reducePod leaves of a pod that has a node what scheduling others and evicting it
// ask of it. There are many of them, and decoded each would take several kB.
func reducePod(obj objects.Object) {
	p, ok := obj.(*corev1.Pod)
	if !ok || p.Spec.NodeName == "" {
		return
	}
	spec, status := p.Spec, p.Status
	*p = corev1.Pod{
		TypeMeta: p.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
			Labels: p.Labels, Annotations: failoverAlone(p.Annotations), OwnerReferences: p.OwnerReferences,
			DeletionTimestamp: p.DeletionTimestamp,
		},
		Spec: corev1.PodSpec{
			NodeName: spec.NodeName, Tolerations: spec.Tolerations, Affinity: spec.Affinity,
			Priority: spec.Priority, Overhead: spec.Overhead, Resources: spec.Resources,
			Containers: reduceContainers(spec.Containers), InitContainers: reduceContainers(spec.InitContainers),
		},
		Status: corev1.PodStatus{Phase: status.Phase, StartTime: status.StartTime},
	}
}

func failoverAlone(annotations map[string]string) map[string]string {
	if policy, ok := annotations[api.AnnotationFailover]; ok {
		return map[string]string{api.AnnotationFailover: policy}
	}
	return nil
}

// reduceContainers leaves what containers take of a node.
func reduceContainers(containers []corev1.Container) []corev1.Container {
	reduced := make([]corev1.Container, 0, len(containers))
	for i := range containers {
		c := &containers[i]
		reduced = append(reduced, corev1.Container{Ports: c.Ports, Resources: c.Resources, RestartPolicy: c.RestartPolicy})
	}
	return reduced
}

// reduceNode leaves out what nobody who places pods asks of a node.
func reduceNode(obj objects.Object) {
	if n, ok := obj.(*corev1.Node); ok {
		n.Annotations = nil
		n.Status = corev1.NodeStatus{Allocatable: n.Status.Allocatable, Images: n.Status.Images}
	}
}

// reduceHeard leaves of a node what its controller asks: who it is, its taints, and
// whether it says that it is ready.
func reduceHeard(obj objects.Object) {
	n, ok := obj.(*corev1.Node)
	if !ok {
		return
	}
	var conditions []corev1.NodeCondition
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			conditions = []corev1.NodeCondition{c}
		}
	}
	*n = corev1.Node{
		TypeMeta: n.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion,
			CreationTimestamp: n.CreationTimestamp, DeletionTimestamp: n.DeletionTimestamp,
		},
		Spec:   corev1.NodeSpec{Taints: n.Spec.Taints},
		Status: corev1.NodeStatus{Conditions: conditions},
	}
}
