package volume

import (
	"context"
	"fmt"
	"io/fs"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bramble.dev/bramble/nodeagent/container"
)

// file is one file of a configMap or secret volume.
type file struct {
	data []byte
	mode fs.FileMode
}

// ordinaryMode is Kubernetes' defaultMode.
const ordinaryMode int32 = 0o644

// configMap returns a volume's files by path.
func configMap(ctx context.Context, source Source, namespace string, from *corev1.ConfigMapVolumeSource) (map[string]file, error) {
	c := choice{kind: "ConfigMap", namespace: namespace, name: from.Name, items: from.Items, mode: from.DefaultMode, optional: from.Optional}
	object, err := source.ConfigMap(ctx, namespace, from.Name)
	if err != nil {
		return c.absent(err)
	}
	data := map[string][]byte{}
	for key, text := range object.Data {
		data[key] = []byte(text)
	}
	maps.Copy(data, object.BinaryData)
	return c.files(data)
}

// secret returns a volume's files by path.
func secret(ctx context.Context, source Source, namespace string, from *corev1.SecretVolumeSource) (map[string]file, error) {
	c := choice{kind: "Secret", namespace: namespace, name: from.SecretName, items: from.Items, mode: from.DefaultMode, optional: from.Optional}
	object, err := source.Secret(ctx, namespace, from.SecretName)
	if err != nil {
		return c.absent(err)
	}
	return c.files(object.Data)
}

// choice is what a volume takes of one object.
type choice struct {
	kind, namespace, name string
	items                 []corev1.KeyToPath // none: all keys, each at its own name
	mode                  *int32
	optional              *bool
}

// absent decides what an object that was not to be had means.
func (c choice) absent(err error) (map[string]file, error) {
	switch {
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("cannot get %s %q: %w", c.kind, c.name, err)
	case c.isOptional():
		return nil, nil
	}
	return nil, &container.MissingError{Kind: c.kind, Namespace: c.namespace, Name: c.name}
}

func (c choice) files(data map[string][]byte) (map[string]file, error) {
	files := map[string]file{}
	if len(c.items) == 0 {
		for key, value := range data {
			files[key] = file{value, permission(c.mode, nil)}
		}
		return files, nil
	}
	for _, item := range c.items {
		value, ok := data[item.Key]
		if !ok && c.isOptional() {
			continue
		}
		if !ok {
			return nil, &container.MissingError{Kind: c.kind, Namespace: c.namespace, Name: c.name, Key: item.Key}
		}
		files[item.Path] = file{value, permission(c.mode, item.Mode)}
	}
	return files, nil
}

func (c choice) isOptional() bool { return c.optional != nil && *c.optional }

func permission(all, one *int32) fs.FileMode {
	mode := ordinaryMode
	if all != nil {
		mode = *all
	}
	if one != nil {
		mode = *one
	}
	return fs.FileMode(mode) & fs.ModePerm
}
