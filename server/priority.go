package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bramble.dev/bramble/server/admission"
	"bramble.dev/bramble/server/objects"
)

// priorities is the part of the admission chain that gives a new pod the
// priority of its class, keeps the default class the only one, and keeps the
// classes of the system.
type priorities struct {
	// registry returns the one whose chain this is part of.
	registry func() *objects.Registry
}

// Admit implements objects.Admitter.
func (p priorities) Admit(ctx context.Context, req objects.Request) error {
	switch resource := req.Kind.Resource(); {
	case resource == "pods" && req.Verb == "create" && req.Subresource == "":
		return p.resolve(ctx, req.Obj.(*corev1.Pod))
	case resource != classResource:
		return nil
	case req.Verb == "delete" && slices.ContainsFunc(admission.SystemPriorityClasses(), func(c *schedulingv1.PriorityClass) bool { return c.Name == req.Name }):
		return errors.New("this is a system priority class and cannot be deleted")
	case req.Verb != "delete" && req.Obj.(*schedulingv1.PriorityClass).GlobalDefault:
		other, err := p.globalDefault(ctx)
		if err != nil || other == nil || other.Name == req.Name {
			return err
		}
		return fmt.Errorf("PriorityClass %s is already marked as default. Only one default can exist; set its globalDefault to false first", other.Name)
	}
	return nil
}

const classResource = "priorityclasses.scheduling.k8s.io"

// resolve gives a new pod priority and preemption policy, both of which it may
// only say as they are.
func (p priorities) resolve(ctx context.Context, pod *corev1.Pod) error {
	class, err := p.classOf(ctx, pod)
	if err != nil {
		return err
	}
	pod.Spec.PriorityClassName = class.Name
	if said := pod.Spec.Priority; said != nil && *said != class.Value {
		return fmt.Errorf("the integer value of priority (%d) must not be provided in pod spec; "+
			"priority admission controller computed %d from the given PriorityClass name; remove spec.priority", *said, class.Value)
	}
	pod.Spec.Priority = &class.Value
	policy := corev1.PreemptLowerPriority
	if class.PreemptionPolicy != nil {
		policy = *class.PreemptionPolicy
	}
	if said := pod.Spec.PreemptionPolicy; said != nil && *said != policy {
		return fmt.Errorf("the string value of PreemptionPolicy (%s) must not be provided in pod spec; "+
			"priority admission controller computed %s from the given PriorityClass name; remove spec.preemptionPolicy", *said, policy)
	}
	pod.Spec.PreemptionPolicy = &policy
	return nil
}

// classOf is the class that the pod names, or else the default one, or else one
// without name and of priority 0.
func (p priorities) classOf(ctx context.Context, pod *corev1.Pod) (*schedulingv1.PriorityClass, error) {
	name := pod.Spec.PriorityClassName
	if name == "" {
		class, err := p.globalDefault(ctx)
		if class == nil {
			class = &schedulingv1.PriorityClass{}
		}
		return class, err
	}
	kind, err := p.kind()
	if err != nil {
		return nil, err
	}
	stored, err := p.registry().Get(ctx, kind, "", name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("no PriorityClass with name %s was found; kubectl get priorityclasses shows those that there are", name)
	}
	if err != nil {
		return nil, err
	}
	return decodeClass(kind, stored.Body.Bytes())
}

func (p priorities) globalDefault(ctx context.Context) (*schedulingv1.PriorityClass, error) {
	kind, err := p.kind()
	if err != nil {
		return nil, err
	}
	list, err := p.registry().List(ctx, kind, "", objects.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, item := range list.Items {
		// Decoding is dear, and each new pod comes here.
		body := item.Body.Bytes()
		if !bytes.Contains(body, []byte(`"globalDefault":true`)) {
			continue
		}
		if class, err := decodeClass(kind, body); err != nil || class.GlobalDefault {
			return class, err
		}
	}
	return nil, nil
}

func (p priorities) kind() (*objects.Kind, error) {
	kind, ok := p.registry().Kind(schedulingv1.GroupName, "priorityclasses")
	if !ok {
		return nil, errors.New("cannot do without the kind " + classResource)
	}
	return kind, nil
}

func decodeClass(kind *objects.Kind, body []byte) (*schedulingv1.PriorityClass, error) {
	obj, err := kind.Decode(body)
	if err != nil {
		return nil, err
	}
	return obj.(*schedulingv1.PriorityClass), nil
}

// createPriorityClasses makes those of the system that are missing.
func createPriorityClasses(ctx context.Context, registry *objects.Registry) error {
	kind, err := priorities{func() *objects.Registry { return registry }}.kind()
	if err != nil {
		return err
	}
	for _, class := range admission.SystemPriorityClasses() {
		if _, err := registry.Get(ctx, kind, "", class.Name); err == nil {
			continue
		}
		_, err := registry.Create(ctx, kind, "", class, objects.WriteOptions{FieldManager: manager})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("cannot create priority class %s: %w", class.Name, err)
		}
	}
	return nil
}
