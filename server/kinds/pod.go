package kinds

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"bramble.dev/bramble/server/admission"
	"bramble.dev/bramble/server/objects"
)

func pod() *objects.Kind {
	return &objects.Kind{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Pod"),
		Plural:           "pods", Singular: "pod", ShortNames: []string{"po"}, Categories: []string{"all"},
		Namespaced: true,
		New:        func() objects.Object { return &corev1.Pod{} },
		NewList:    func() runtime.Object { return &corev1.PodList{} },

		FieldNames: []string{
			"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
			"status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName",
		},
		Fields: podFields,
		Strategy: objects.Strategy{
			Default:        on(admission.DefaultPod),
			PrepareCreate:  on(admission.PreparePod),
			PrepareUpdate:  onBoth(admission.PreparePodUpdate),
			Validate:       check(admission.ValidatePod),
			ValidateUpdate: checkBoth(admission.ValidatePodUpdate),
			Warnings:       func(obj objects.Object) []string { return admission.PodWarnings(obj.(*corev1.Pod)) },
			Grace:          podGrace,
		},
		Subresources: podSubresources(),

		Columns: []metav1.TableColumnDefinition{
			column("Ready", "string", "How many of its containers are ready"),
			column("Status", "string", "The state of the pod and its containers"),
			column("Restarts", "string", "How often its containers were restarted, and when last"),
			wide("IP", "string", "The pod's address"),
			wide("Node", "string", "The node that it is placed on"),
			wide("Nominated Node", "string", "The node that is being cleared for it"),
			wide("Readiness Gates", "string", "How many of its readiness gates are open"),
		},
		Row: podRow,
	}
}

func podSubresources() []objects.Subresource {
	return []objects.Subresource{
		{
			Name: "status", Verbs: statusVerbs(),
			Update:   onBoth(func(obj, into *corev1.Pod) { admission.PreparePodStatus(into, obj.Status) }),
			Validate: checkBoth(admission.ValidatePodStatus),
		},
		{
			// The handler makes the change with admission.BindPod.
			Name: "binding", Verbs: []string{"create"}, GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Binding"),
			Update: onBoth(func(obj, into *corev1.Pod) {
				into.Spec.NodeName, into.Status, into.Annotations = obj.Spec.NodeName, obj.Status, obj.Annotations
			}),
			Validate: checkBoth(admission.ValidateBinding),
		},
		{Name: "eviction", Verbs: []string{"create"}, GroupVersionKind: policyv1.SchemeGroupVersion.WithKind("Eviction")},
		{Name: "log", Verbs: []string{"get"}},
		{Name: "exec", Verbs: []string{"create", "get"}, GroupVersionKind: corev1.SchemeGroupVersion.WithKind("PodExecOptions")},
		{Name: "attach", Verbs: []string{"create", "get"}, GroupVersionKind: corev1.SchemeGroupVersion.WithKind("PodAttachOptions")},
		{Name: "portforward", Verbs: []string{"create", "get"}, GroupVersionKind: corev1.SchemeGroupVersion.WithKind("PodPortForwardOptions")},
		{
			Name: "proxy", Verbs: []string{"create", "delete", "get", "patch", "update"},
			GroupVersionKind: corev1.SchemeGroupVersion.WithKind("PodProxyOptions"),
		},
	}
}

func podFields(obj objects.Object) fields.Set {
	p := obj.(*corev1.Pod)
	addresses := ""
	for i, ip := range p.Status.PodIPs {
		if i > 0 {
			addresses += ","
		}
		addresses += ip.IP
	}
	return fields.Set{
		"spec.nodeName":            p.Spec.NodeName,
		"spec.restartPolicy":       string(p.Spec.RestartPolicy),
		"spec.schedulerName":       p.Spec.SchedulerName,
		"spec.serviceAccountName":  p.Spec.ServiceAccountName,
		"spec.hostNetwork":         strconv.FormatBool(p.Spec.HostNetwork),
		"status.phase":             string(p.Status.Phase),
		"status.podIP":             p.Status.PodIP,
		"status.podIPs":            addresses,
		"status.nominatedNodeName": p.Status.NominatedNodeName,
	}
}

// podGrace deletes at once what no node runs: a pod without a node, or one
// that has ended.
func podGrace(obj objects.Object, requested *int64) int64 {
	p := obj.(*corev1.Pod)
	if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return 0
	}
	grace := p.Spec.TerminationGracePeriodSeconds
	if requested != nil {
		grace = requested
	}
	switch {
	case grace == nil:
		return corev1.DefaultTerminationGracePeriodSeconds
	case *grace < 0:
		return 1
	}
	return *grace
}
