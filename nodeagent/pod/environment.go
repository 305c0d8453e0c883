package pod

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bramble.dev/bramble/nodeagent/container"
)

// environment composes a container's variables: envFrom first, then env, later
// names over earlier ones, $(NAME) expanded by what stands before. A missing
// object is a *container.MissingError.
func environment(ctx context.Context, d Desired, with surroundings, spec *corev1.Container) ([]container.Env, error) {
	values := map[string]string{}
	var names []string
	set := func(name, value string) {
		if _, known := values[name]; !known {
			names = append(names, name)
		}
		values[name] = value
	}
	lookup := func(name string) (string, bool) { v, ok := values[name]; return v, ok }
	for _, from := range spec.EnvFrom {
		data, err := envFrom(ctx, d.Pod.Namespace, from, with.source)
		if err != nil {
			return nil, err
		}
		for _, key := range slices.Sorted(maps.Keys(data)) {
			set(from.Prefix+key, data[key])
		}
	}
	for _, env := range spec.Env {
		if env.ValueFrom == nil {
			set(env.Name, Expand(env.Value, lookup))
			continue
		}
		value, found, err := envValue(ctx, d, with, spec, env.ValueFrom)
		if err != nil {
			return nil, err
		}
		if found {
			set(env.Name, value)
		}
	}
	all := make([]container.Env, 0, len(names))
	for _, name := range names {
		all = append(all, container.Env{Name: name, Value: values[name]})
	}
	return all, nil
}

// envFrom returns all entries of a ConfigMap or Secret.
func envFrom(ctx context.Context, namespace string, from corev1.EnvFromSource, source Source) (map[string]string, error) {
	switch {
	case from.ConfigMapRef != nil:
		data, err := configMapData(ctx, namespace, from.ConfigMapRef.Name, source)
		return data, optional(err, from.ConfigMapRef.Optional)
	case from.SecretRef != nil:
		data, err := secretData(ctx, namespace, from.SecretRef.Name, source)
		return data, optional(err, from.SecretRef.Optional)
	}
	return nil, nil
}

// envValue returns one variable's value from elsewhere; found is false where
// an optional source is missing.
func envValue(ctx context.Context, d Desired, with surroundings, spec *corev1.Container, from *corev1.EnvVarSource) (value string, found bool, err error) {
	switch {
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		data, err := configMapData(ctx, d.Pod.Namespace, ref.Name, with.source)
		return pick(data, err, ref.Key, ref.Optional, &container.MissingError{Kind: "ConfigMap", Namespace: d.Pod.Namespace, Name: ref.Name, Key: ref.Key})
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		data, err := secretData(ctx, d.Pod.Namespace, ref.Name, with.source)
		return pick(data, err, ref.Key, ref.Optional, &container.MissingError{Kind: "Secret", Namespace: d.Pod.Namespace, Name: ref.Name, Key: ref.Key})
	case from.FieldRef != nil:
		value, err := fieldValue(d, with.hostIP, from.FieldRef.FieldPath)
		return value, err == nil, err
	case from.ResourceFieldRef != nil:
		value, err := resourceValue(d.Pod, spec, from.ResourceFieldRef, with.allocatable)
		return value, err == nil, err
	}
	return "", false, errors.New("this source of an environment variable is not supported by this node")
}

// pick takes one key of an object's entries.
func pick(data map[string]string, err error, key string, isOptional *bool, absent error) (string, bool, error) {
	value, found := data[key]
	if err == nil && !found {
		err = absent
	}
	return value, found, optional(err, isOptional)
}

// optional forgives that an optional object is missing.
func optional(err error, isOptional *bool) error {
	var missing *container.MissingError
	if isOptional != nil && *isOptional && errors.As(err, &missing) {
		return nil
	}
	return err
}

// missing makes a *container.MissingError of the server's NotFound.
func missing(err error, kind, namespace, name string) error {
	if apierrors.IsNotFound(err) {
		return &container.MissingError{Kind: kind, Namespace: namespace, Name: name}
	}
	return err
}

func configMapData(ctx context.Context, namespace, name string, source Source) (map[string]string, error) {
	object, err := source.ConfigMap(ctx, namespace, name)
	if err != nil {
		return nil, missing(err, "ConfigMap", namespace, name)
	}
	return object.Data, nil
}

func secretData(ctx context.Context, namespace, name string, source Source) (map[string]string, error) {
	object, err := source.Secret(ctx, namespace, name)
	if err != nil {
		return nil, missing(err, "Secret", namespace, name)
	}
	data := make(map[string]string, len(object.Data))
	for key, value := range object.Data {
		data[key] = string(value)
	}
	return data, nil
}

// fieldValue is the downward API's fieldRef.
func fieldValue(d Desired, hostIP, path string) (string, error) {
	switch path {
	case "metadata.name":
		return d.Pod.Name, nil
	case "metadata.namespace":
		return d.Pod.Namespace, nil
	case "metadata.uid":
		return string(d.Pod.UID), nil
	case "spec.nodeName":
		return d.Pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return d.Pod.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs":
		return hostIP, nil
	case "status.podIP", "status.podIPs":
		if d.Pod.Spec.HostNetwork {
			return hostIP, nil
		}
		return d.Address.String(), nil
	}
	for prefix, of := range map[string]map[string]string{"metadata.labels['": d.Pod.Labels, "metadata.annotations['": d.Pod.Annotations} {
		if key, ok := strings.CutPrefix(path, prefix); ok {
			return of[strings.TrimSuffix(key, "']")], nil
		}
	}
	return "", fmt.Errorf("fieldPath %q is not supported", path)
}

// ResourceValue is resourceValue where the container is named by ref, as in volumes.
func ResourceValue(pod *corev1.Pod, ref *corev1.ResourceFieldSelector, allocatable corev1.ResourceList) (string, error) {
	if ref.ContainerName == "" {
		return "", errors.New("resourceFieldRef: containerName is required in a volume")
	}
	return resourceValue(pod, nil, ref, allocatable)
}

// resourceValue is the downward API's resourceFieldRef: a limit that is not set
// is what the node has.
func resourceValue(pod *corev1.Pod, spec *corev1.Container, ref *corev1.ResourceFieldSelector, allocatable corev1.ResourceList) (string, error) {
	if ref.ContainerName != "" {
		m, found := memberOf(pod, ref.ContainerName)
		if !found {
			return "", fmt.Errorf("resourceFieldRef: the pod has no container %q", ref.ContainerName)
		}
		spec = m.spec
	}
	list, name, _ := strings.Cut(ref.Resource, ".")
	amount := spec.Resources.Requests[corev1.ResourceName(name)]
	if list == "limits" {
		limit, set := spec.Resources.Limits[corev1.ResourceName(name)]
		if amount = limit; !set || limit.IsZero() {
			amount = allocatable[corev1.ResourceName(name)]
		}
	}
	divisor := ref.Divisor
	if divisor.IsZero() {
		divisor.Set(1)
	}
	if name == string(corev1.ResourceCPU) {
		return strconv.FormatInt(roundedUp(amount.MilliValue(), divisor.MilliValue()), 10), nil
	}
	return strconv.FormatInt(roundedUp(amount.Value(), divisor.Value()), 10), nil
}

func roundedUp(amount, divisor int64) int64 {
	if divisor <= 0 {
		return amount
	}
	return (amount + divisor - 1) / divisor
}
