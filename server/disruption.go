package server

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/admission"
	"bramble.dev/bramble/server/objects"
)

// evictionName is who evictions for taints, and their events, are by.
const evictionName = "taint-eviction-controller"

// reasonTaint is Kubernetes' reason of DisruptionTarget for such an eviction.
const reasonTaint = "DeletionByTaintManager"

// disruption ends pods that did nothing wrong, for the reason it names.
type disruption struct {
	registry            *objects.Registry
	pods                *objects.Kind
	now                 func() time.Time
	by, reason, message string
}

// Evict marks pod as disrupted and deletes it with its grace period. A pod that is
// gone, or has another's name by now, is no error.
func (d disruption) Evict(ctx context.Context, pod *corev1.Pod) error {
	marked := func(current objects.Object) (objects.Object, error) {
		now := current.(*corev1.Pod)
		if now.UID != pod.UID {
			return nil, apierrors.NewNotFound(d.pods.GroupResource(), pod.Name)
		}
		admission.SetPodCondition(&now.Status, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: d.reason, Message: d.message,
			ObservedGeneration: now.Generation,
		}, metav1.NewTime(d.now()))
		return now, nil
	}
	_, err := d.registry.Update(ctx, d.pods, "status", pod.Namespace, pod.Name, marked, objects.WriteOptions{FieldManager: d.by})
	if err == nil {
		_, _, err = d.registry.Delete(ctx, d.pods, pod.Namespace, pod.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
