package rest

import (
	"net/http"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/admission"
	"bramble.dev/bramble/server/objects"
)

var evictionKind = policyv1.SchemeGroupVersion.WithKind("Eviction")

// evict serves POST of an Eviction to pods/NAME/eviction: the pod is deleted, and
// its status says why. Nothing holds an eviction back yet: there are no
// PodDisruptionBudgets.
func (s *server) evict(w http.ResponseWriter, r *request) error {
	var eviction policyv1.Eviction
	opts, warnings, err := readInto(r, "CreateOptions", &eviction, evictionKind)
	if err != nil {
		return err
	}
	switch {
	case eviction.Name != "" && eviction.Name != r.Name:
		return badRequest("name in URL does not match name in Eviction object")
	case eviction.Namespace != "" && eviction.Namespace != r.Namespace:
		return badRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	var options metav1.DeleteOptions
	if eviction.DeleteOptions != nil {
		options = *eviction.DeleteOptions
	}
	if opts.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	if err := s.markEvicted(r, options); err != nil {
		return err
	}
	if _, _, err := s.cfg.Registry.Delete(r.Context(), r.kind, r.Namespace, r.Name, options); err != nil {
		return err
	}
	addWarnings(w, warnings)
	writeStatus(w, metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusCreated})
	return nil
}

// markEvicted gives a pod that runs the condition by which its owners tell an
// eviction from a failure. The preconditions of the deletion are checked with it,
// and hold for it.
func (s *server) markEvicted(r *request, options metav1.DeleteOptions) error {
	if len(options.DryRun) > 0 {
		return nil
	}
	now := metav1.NewTime(s.cfg.Now())
	change := func(current objects.Object) (objects.Object, error) {
		pod, ok := current.(*corev1.Pod)
		if !ok {
			return nil, wrongType(r.kind, current)
		}
		wanted := options.Preconditions == nil ||
			(options.Preconditions.UID == nil || *options.Preconditions.UID == pod.UID) &&
				(options.Preconditions.ResourceVersion == nil || *options.Preconditions.ResourceVersion == pod.ResourceVersion)
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if !wanted || ended || pod.DeletionTimestamp != nil || options.Preconditions != nil && options.Preconditions.ResourceVersion != nil {
			return pod, nil // Delete says what is wrong, or there is nothing to say
		}
		admission.SetPodCondition(&pod.Status, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, ObservedGeneration: pod.Generation,
			Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
		}, now)
		return pod, nil
	}
	_, err := s.cfg.Registry.Update(r.Context(), r.kind, "status", r.Namespace, r.Name, change, objects.WriteOptions{})
	return err
}
