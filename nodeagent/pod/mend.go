//lint:file-ignore ST1005 these are the kubelet's own words, which people and tools look for

package pod

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/container"
)

// mendImage takes an image whose layers are damaged off the node and pulls it
// again, when the registry has it: before that nothing is removed, so that what
// still runs of it goes on while the node is cut off. Images that may not be
// pulled are left to a person.
func (w *worker) mendImage(ctx context.Context, d Desired, spec *corev1.Container, damage error) error {
	if spec.ImagePullPolicy == corev1.PullNever || strings.HasPrefix(spec.Image, "localhost/") {
		return &Failure{Reason: "ImageInspectError", Event: "InspectFailed", Err: fmt.Errorf(
			"Failed to inspect image %q: %w; it is not pulled, so remove it and load it again on the node: podman image rm --force %s && podman load --input FILE",
			spec.Image, damage, spec.Image)}
	}
	w.set.mending.Lock()
	defer w.set.mending.Unlock()
	images := w.set.cfg.Images
	image, found, err := images.Image(ctx, spec.Image)
	if err == nil && found { // another pod's worker was first
		return w.keepImage(spec, image)
	}
	if errors.Is(err, container.ErrNoRoom) {
		return &Failure{Reason: "ImageInspectError", Event: "InspectFailed", Err: err}
	}
	w.event(d, spec.Name, corev1.EventTypeWarning, "InspectFailed", fmt.Sprintf("Failed to inspect image %q: %v; it is pulled anew", spec.Image, damage))
	shown, _ := credentials(ctx, d.Pod, spec.Image, w.set.cfg.Source)
	image, err = images.Pull(ctx, spec.Image, shown)
	if err != nil && !isRegistrys(err) {
		if err = images.RemoveImage(ctx, spec.Image); err == nil {
			image, err = images.Pull(ctx, spec.Image, shown)
		}
	}
	if err != nil {
		return &Failure{Reason: ReasonErrImagePull, Event: "Failed", Err: fmt.Errorf("Failed to pull image %q in the place of a damaged one: %w", spec.Image, err)}
	}
	w.event(d, spec.Name, corev1.EventTypeNormal, "Pulled", fmt.Sprintf("Successfully pulled image %q in the place of a damaged one", spec.Image))
	return w.keepImage(spec, image)
}

// isRegistrys reports whether a pull failed before it came to the node's own
// storage, or was broken off; or for want of room, of which a removal would leave
// the node without the image.
func isRegistrys(err error) bool {
	for _, cause := range []error{
		container.ErrImageNotFound, container.ErrUnauthorized, container.ErrImageCorrupt, container.ErrRegistryUnavailable, container.ErrInvalidImageName,
		container.ErrNoRoom, container.ErrUnavailable, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}
