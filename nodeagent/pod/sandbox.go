package pod

import corev1 "k8s.io/api/core/v1"

// planSandboxChange ends the containers that run though the pod's infra container
// has ended: they share namespaces with it that a new one does not have. As in
// Kubernetes all of them begin anew then, as far as the restart policy lets them.
// Init containers have done their work and are not run again.
func planSandboxChange(d Desired, o Observed) []Step {
	if o.Engine.Running || len(o.running()) == 0 {
		return nil
	}
	return planStop(d, o)
}

// tellSandboxChange makes the event of a new infra container in a pod that had one.
func (w *worker) tellSandboxChange(d Desired) {
	if len(w.memory.Engine.Containers) > 0 {
		w.event(d, "", corev1.EventTypeNormal, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
	}
}
