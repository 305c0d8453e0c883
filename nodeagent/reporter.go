package nodeagent

import (
	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/report"
)

// reporter is the workers' pod.Reporter.
type reporter struct {
	pods    *report.Pods
	events  *report.Events
	desires *desires
}

func (r *reporter) Status(p *corev1.Pod, st corev1.PodStatus) { r.pods.Status(p, st) }

func (r *reporter) Event(p *corev1.Pod, container, eventType, reason, message string) {
	r.events.Pod(p, container, eventType, reason, message)
}

// Gone tells the server, whose answer ends the record; a pod that the server
// had deleted before ends here.
func (r *reporter) Gone(uid string, p *corev1.Pod) {
	r.pods.Gone(uid, p)
	if p == nil {
		r.desires.drop(uid)
	}
}
