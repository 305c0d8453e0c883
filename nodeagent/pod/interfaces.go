package pod

import (
	"context"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/container"
)

// Pods is the container engine's pods. All methods are safe for concurrent use
// and idempotent: making what exists and removing what is gone succeed.
type Pods interface {
	List(ctx context.Context) ([]container.Pod, error)
	Get(ctx context.Context, uid string) (container.Pod, error) // container.Pod{} when there is none
	Create(ctx context.Context, spec container.PodSpec) error   // made and its infra container started
	Halt(ctx context.Context, uid string) error                 // its infra container ends, the rest stays
	Remove(ctx context.Context, uid string) error               // with all its containers
}

// Containers is the container engine's containers.
type Containers interface {
	CreateContainer(ctx context.Context, spec container.Spec) (id string, err error)
	StartContainer(ctx context.Context, id string) error
	StopContainer(ctx context.Context, id string, graceSeconds int64) error
	RemoveContainer(ctx context.Context, id string) error
}

// Images is the node's images.
type Images interface {
	Image(ctx context.Context, ref string) (container.Image, bool, error)
	// Pull tries the credentials in order, and none where there are none.
	Pull(ctx context.Context, ref string, credentials []container.Credential) (container.Image, error)
	RemoveImage(ctx context.Context, ref string) error // with all containers made from it
}

// Network gives a pod its network namespace.
type Network interface {
	// Attach makes sure of the pod's namespace with this address, and returns its path.
	Attach(ctx context.Context, uid string, addr netip.Addr, ports []HostPort) (path string, err error)
	Detach(ctx context.Context, uid string) error
}

// Volumes makes a pod's volumes.
type Volumes interface {
	// Mount makes sure of all of the pod's volumes and returns, by container
	// name, what is to be mounted. A missing object is a *container.MissingError.
	Mount(ctx context.Context, pod *corev1.Pod, source Source) (map[string][]container.Mount, error)
	Unmount(ctx context.Context, uid string) error
	// Update brings what follows an object up to date, as far as that can be had.
	Update(ctx context.Context, pod *corev1.Pod, source Source)
	// Part mounts a part of a volume for a container and returns where it is.
	Part(ctx context.Context, uid, name string, index int, m container.Mount, subPath string) (string, error)
}

// Devices gives containers the node's devices.
type Devices interface {
	// Allocate gives a container what its limits ask for: all of it, and what it had
	// before again, or an error. It is the container's until Release.
	Allocate(ctx context.Context, pod *corev1.Pod, spec *corev1.Container) ([]container.Device, error)
	// Look says which of the devices that a container was given are gone, and which
	// have come back where it does not find them.
	Look(given []container.Device) (gone, moved []container.Device)
	// Release frees what a pod's containers have.
	Release(uid string)
}

// Probes runs probes and hooks in running containers.
type Probes interface {
	// Watch makes sure that the probes of these containers run, and no others of
	// the pod's, and returns what they say, by the engine's id. It does not block;
	// when there is news, the pod's worker is nudged.
	Watch(uid string, pod *corev1.Pod, running []container.Probed) map[string]container.Health
	// Hook runs a lifecycle hook until it is done or ctx ends.
	Hook(ctx context.Context, t container.Target, hook *corev1.LifecycleHandler) error
}

// Source is where volumes and environments get ConfigMaps and Secrets from:
// the server, or the node's own record when the server is away. It is an alias:
// package volume names the same type without importing this one.
type Source = interface {
	ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
}

// Reporter takes what is to be told to the server. Its methods do not block
// and are safe for concurrent use; it sends what changed only, and in order.
type Reporter interface {
	Status(pod *corev1.Pod, status corev1.PodStatus)
	// Event is one of the pod's events, about one of its containers or (by "")
	// about the pod.
	Event(pod *corev1.Pod, container, eventType, reason, message string)
	// Gone says that nothing of a pod is left on this node. pod is nil when it
	// is not wanted any more; it may have been said before with the pod.
	Gone(uid string, pod *corev1.Pod)
}
