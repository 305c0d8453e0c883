package rest

import (
	"fmt"
	"maps"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bramble.dev/bramble/server/admission"
	"bramble.dev/bramble/server/objects"
)

var bindingKind = schema.GroupVersionKind{Version: "v1", Kind: "Binding"}

// bind serves POST of a Binding to pods/NAME/binding: the pod gets its node.
func (s *server) bind(w http.ResponseWriter, r *request) error {
	var binding corev1.Binding
	opts, warnings, err := readInto(r, "CreateOptions", &binding, bindingKind)
	if err != nil {
		return err
	}
	if err := checkBinding(&binding, r); err != nil {
		return err
	}
	now := metav1.NewTime(s.cfg.Now())
	change := func(current objects.Object) (objects.Object, error) {
		pod, ok := current.(*corev1.Pod)
		if !ok {
			return nil, wrongType(r.kind, current)
		}
		return pod, assign(pod, &binding, r.resource(), now)
	}
	if _, err := s.cfg.Registry.Update(r.Context(), r.kind, r.subresource(), r.Namespace, r.Name, change, opts.WriteOptions); err != nil {
		return err
	}
	addWarnings(w, warnings)
	writeStatus(w, metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusCreated})
	return nil
}

func checkBinding(b *corev1.Binding, r *request) error {
	if b.Name != "" && b.Name != r.Name {
		return badRequest("the name of the object (%s) does not match the name on the URL (%s)", b.Name, r.Name)
	}
	if b.Namespace != "" && b.Namespace != r.Namespace {
		return badRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if b.Target.Kind != "" && b.Target.Kind != "Node" || b.Target.Name == "" {
		return badRequest(`target: Invalid value: a binding names a target of kind "Node"`)
	}
	return nil
}

// assign binds a pod, once: a bound, ending or deleted pod is a conflict.
func assign(pod *corev1.Pod, b *corev1.Binding, gr schema.GroupResource, now metav1.Time) error {
	switch {
	case b.UID != "" && b.UID != pod.UID:
		return apierrors.NewConflict(gr, pod.Name, fmt.Errorf("the UID in the binding (%s) is not the pod's (%s)", b.UID, pod.UID))
	case pod.DeletionTimestamp != nil:
		return apierrors.NewConflict(gr, pod.Name, fmt.Errorf("pod %s is being deleted, cannot be assigned to a host", pod.Name))
	case pod.Spec.NodeName != "":
		return apierrors.NewConflict(gr, pod.Name, fmt.Errorf("pod %s is already assigned to node %q", pod.Name, pod.Spec.NodeName))
	}
	if len(b.Annotations) > 0 && pod.Annotations == nil {
		pod.Annotations = make(map[string]string)
	}
	maps.Copy(pod.Annotations, b.Annotations)
	admission.BindPod(pod, b.Target.Name, now)
	return nil
}
