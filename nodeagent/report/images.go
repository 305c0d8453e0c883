package report

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/container"
)

// The kubelet's limits on what a node says of its images.
const (
	maxImages     = 50
	maxImageNames = 5
	maxImageTags  = 3 // of the names, where there are more digests than room
)

// NodeImages is what the node's status says of its images: the largest, which
// are worth most where a pod needs them. Equal images give an equal result, in
// whatever order they come.
func NodeImages(stored []container.StoredImage) []corev1.ContainerImage {
	images := make([]corev1.ContainerImage, 0, len(stored))
	for _, s := range stored {
		tags := slices.Sorted(slices.Values(s.Tags))
		digests := slices.Sorted(slices.Values(s.Digests))
		tags = tags[:min(len(tags), max(maxImageTags, maxImageNames-len(digests)))]
		digests = digests[:min(len(digests), maxImageNames-len(tags))]
		images = append(images, corev1.ContainerImage{Names: append(digests, tags...), SizeBytes: s.SizeBytes})
	}
	slices.SortFunc(images, func(a, b corev1.ContainerImage) int {
		return cmp.Or(cmp.Compare(b.SizeBytes, a.SizeBytes), slices.Compare(a.Names, b.Names))
	})
	return images[:min(len(images), maxImages)]
}
