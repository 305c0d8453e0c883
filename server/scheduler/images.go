package scheduler

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Kubernetes' thresholds: less than the first does not matter, more than the
// second, for each container, is as good as all.
const (
	littleImage = 23 << 20
	muchImage   = 1000 << 20
)

func imagesOf(n *corev1.Node) map[string]int64 {
	if len(n.Status.Images) == 0 {
		return nil
	}
	sizes := make(map[string]int64, 2*len(n.Status.Images))
	for _, image := range n.Status.Images {
		for _, name := range image.Names {
			sizes[name] = image.SizeBytes
		}
	}
	return sizes
}

func (s *Snapshot) countImages(n *Node, sign int) {
	for name := range n.images {
		if s.images[name] += sign; s.images[name] == 0 {
			delete(s.images, name)
		}
	}
}

// fullName is an image as nodes name it: with its registry, and with its tag or
// its digest.
func fullName(image string) string {
	first, _, nested := strings.Cut(image, "/")
	switch {
	case !nested:
		image = "docker.io/library/" + image
	case !strings.ContainsAny(first, ".:") && first != "localhost":
		image = "docker.io/" + image
	}
	name, digest, byDigest := strings.Cut(image, "@")
	slash := strings.LastIndex(name, "/")
	colon := strings.LastIndex(name, ":")
	switch {
	case byDigest && colon > slash:
		return name[:colon] + "@" + digest
	case !byDigest && colon < slash:
		return name + ":latest"
	}
	return image
}

// ImageLocality prefers nodes that have the pod's images, the more of them in
// bytes the better. An image that few nodes have counts less, so that it does
// not draw all its pods to one node.
type ImageLocality struct{}

// Name implements Score.
func (ImageLocality) Name() string { return "ImageLocality" }

// Rank implements Score.
func (ImageLocality) Rank(s *Snapshot, p *Pod, nodes []*Node) Ranking {
	var names []string
	for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range containers {
			if name := fullName(containers[i].Image); s.images[name] > 0 {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	much := int64(len(p.Spec.InitContainers)+len(p.Spec.Containers)) * muchImage
	there := make([]int64, len(nodes))
	raw := make([]int64, len(nodes))
	for i, n := range nodes {
		for _, name := range names {
			size := n.images[name]
			there[i] += size
			raw[i] += int64(float64(size) * float64(s.images[name]) / float64(len(s.nodes)))
		}
		raw[i] = min(max(raw[i], littleImage), much)
	}
	scores := normalize(raw, littleImage, much)
	return ranks{scores, func(i int) string { return fmt.Sprintf("%d MiB of the pod's images are there", there[i]>>20) }}
}
