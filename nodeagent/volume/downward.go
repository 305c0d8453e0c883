package volume

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// downward returns a downwardAPI volume's files by path.
func (v *Volumes) downward(pod *corev1.Pod, items []corev1.DownwardAPIVolumeFile, mode *int32) (map[string]file, error) {
	files := map[string]file{}
	for _, item := range items {
		var text string
		var err error
		switch {
		case item.FieldRef != nil:
			text, err = metadata(pod, item.FieldRef.FieldPath)
		case item.ResourceFieldRef != nil:
			text, err = v.config.Resource(pod, item.ResourceFieldRef)
		default:
			err = fmt.Errorf("%s: neither fieldRef nor resourceFieldRef is set", item.Path)
		}
		if err != nil {
			return nil, err
		}
		files[item.Path] = file{[]byte(text), permission(mode, item.Mode)}
	}
	return files, nil
}

// metadata is what a file may show of a pod: labels and annotations, all of them
// a line each or one alone, and what identifies it.
func metadata(pod *corev1.Pod, path string) (string, error) {
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "metadata.labels":
		return listing(pod.Labels), nil
	case "metadata.annotations":
		return listing(pod.Annotations), nil
	}
	for prefix, of := range map[string]map[string]string{"metadata.labels['": pod.Labels, "metadata.annotations['": pod.Annotations} {
		if key, ok := strings.CutPrefix(path, prefix); ok {
			return of[strings.TrimSuffix(key, "']")], nil
		}
	}
	return "", fmt.Errorf("fieldPath %q is not supported in a volume", path)
}

// listing has a line for each entry, in Kubernetes' form: key="quoted value".
func listing(all map[string]string) string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		lines = append(lines, key+"="+strconv.Quote(all[key]))
	}
	return strings.Join(lines, "\n")
}

// projected returns the files of all of a projected volume's sources; where two
// have a path, the later source's is taken.
func (v *Volumes) projected(ctx context.Context, pod *corev1.Pod, source Source, from *corev1.ProjectedVolumeSource) (map[string]file, error) {
	all := map[string]file{}
	for _, s := range from.Sources {
		var files map[string]file
		var err error
		switch {
		case s.ConfigMap != nil:
			files, err = configMap(ctx, source, pod.Namespace, &corev1.ConfigMapVolumeSource{
				LocalObjectReference: s.ConfigMap.LocalObjectReference, Items: s.ConfigMap.Items, DefaultMode: from.DefaultMode, Optional: s.ConfigMap.Optional,
			})
		case s.Secret != nil:
			files, err = secret(ctx, source, pod.Namespace, &corev1.SecretVolumeSource{
				SecretName: s.Secret.Name, Items: s.Secret.Items, DefaultMode: from.DefaultMode, Optional: s.Secret.Optional,
			})
		case s.DownwardAPI != nil:
			files, err = v.downward(pod, s.DownwardAPI.Items, from.DefaultMode)
		default:
			err = fmt.Errorf("a source of the projected volume is not supported by this node")
		}
		if err != nil {
			return nil, err
		}
		maps.Copy(all, files)
	}
	return all, nil
}
