package pod

import (
	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/container"
)

// role is a container's place in its pod's life.
type role uint8

const (
	ordinary role = iota // one of spec.containers: the pod is over when these are
	initial              // an init container: it ends, and then the next begins
	sidecar              // an init container that runs on beside the others
)

// member is one of a pod's containers. policy is the restart policy that holds
// for it.
type member struct {
	spec   *corev1.Container
	role   role
	policy corev1.RestartPolicy
}

// members are the pod's containers in the order in which they begin.
func members(pod *corev1.Pod) []member {
	all := make([]member, 0, len(pod.Spec.InitContainers)+len(pod.Spec.Containers))
	for i := range pod.Spec.InitContainers {
		m := member{spec: &pod.Spec.InitContainers[i], role: initial, policy: corev1.RestartPolicyOnFailure}
		switch {
		case m.spec.RestartPolicy != nil && *m.spec.RestartPolicy == corev1.ContainerRestartPolicyAlways:
			m.role, m.policy = sidecar, corev1.RestartPolicyAlways
		case pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
			m.policy = corev1.RestartPolicyNever
		}
		all = append(all, m)
	}
	for i := range pod.Spec.Containers {
		all = append(all, member{spec: &pod.Spec.Containers[i], policy: pod.Spec.RestartPolicy})
	}
	return all
}

// memberOf finds a container of the pod by its name.
func memberOf(pod *corev1.Pod, name string) (member, bool) {
	if pod == nil {
		return member{}, false
	}
	for _, m := range members(pod) {
		if m.spec.Name == name {
			return m, true
		}
	}
	return member{}, false
}

// served reports whether an init container has done its work, so that the next
// may begin: it has succeeded since the machine's start or, of a sidecar, it
// has started.
func served(m member, o Observed) bool {
	c, _ := o.latest(m.spec.Name)
	if m.role == sidecar {
		return o.started(m.spec, c)
	}
	return succeededOnce(c) && !o.stale(c)
}

func succeededOnce(c container.State) bool {
	return c.ID != "" && c.Phase == container.Exited && !lost(c) && c.ExitCode == 0
}

// initialized reports whether the init containers have done their work. It is
// seen by the others as well, which are made only then: an init container that
// somebody removed later is not run again. After a reboot all of them are, as
// Kubernetes has it.
func initialized(pod *corev1.Pod, o Observed) bool {
	if len(pod.Spec.InitContainers) == 0 {
		return true
	}
	all := true
	for _, m := range members(pod) {
		c, _ := o.latest(m.spec.Name)
		if m.role == ordinary && c.ID != "" && (c.Phase == container.Running || !o.stale(c)) {
			return true
		}
		if m.role != ordinary {
			all = all && served(m, o)
		}
	}
	return all
}

// initFailed reports whether an init container has failed for good.
func initFailed(pod *corev1.Pod, o Observed) bool {
	for _, m := range members(pod) {
		c, _ := o.latest(m.spec.Name)
		if m.role == initial && !succeededOnce(c) && ended(m.policy, c, o) {
			return !initialized(pod, o)
		}
	}
	return false
}
