package eviction

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"bramble.dev/bramble/server/api"
)

// forever is the patience of a pod that tolerates all for good.
const forever = time.Duration(math.MaxInt64)

// patience is how long a pod may stay on a node with these taints, from when they
// were all there; 0 or less: it must go now. As in Kubernetes, of several tolerations
// of a taint the first counts, and of several taints the shortest time.
func patience(pod *corev1.Pod, taints []corev1.Taint) time.Duration {
	keep := api.Failover(pod) == api.FailoverKeep
	shortest := forever
	for i := range taints {
		t := &taints[i]
		if t.Effect != corev1.TaintEffectNoExecute || keep && ofAbsence(t.Key) {
			continue
		}
		toleration := first(pod.Spec.Tolerations, t)
		switch {
		case toleration == nil:
			return 0
		case toleration.TolerationSeconds != nil:
			shortest = min(shortest, seconds(*toleration.TolerationSeconds))
		}
	}
	return shortest
}

// ofAbsence reports whether a taint says only that the node is not there.
func ofAbsence(key string) bool {
	return key == corev1.TaintNodeUnreachable || key == corev1.TaintNodeNotReady
}

func first(tolerations []corev1.Toleration, t *corev1.Taint) *corev1.Toleration {
	for i := range tolerations {
		if tolerations[i].ToleratesTaint(klog.Logger{}, t, false) {
			return &tolerations[i]
		}
	}
	return nil
}

// seconds is that many seconds, or nearly 300 years.
func seconds(n int64) time.Duration {
	if n > int64(forever/time.Second)-1 {
		return forever - 1
	}
	return time.Duration(n) * time.Second
}
