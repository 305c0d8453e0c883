// Package volume makes a pod's volumes on the node: directories that the
// runtime binds into the pod's containers. The pod workers call it before they
// make or start containers, and once more when the pod is gone.
//
// What survives a reboot (emptyDir on disk) lies below Config.Dir; what must
// not touch the disk (secrets, configMaps, emptyDir in memory) lies below
// Config.RuntimeDir, a tmpfs, and is made anew by the next Mount.
//
// Container root is the agent's own user, other users of containers are its
// subordinate ids: their files can be read and removed only from inside the
// user namespace of Podman.
package volume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/container"
)

// Config is what Volumes needs to know.
type Config struct {
	Dir        string // on disk; made when missing
	RuntimeDir string // on a tmpfs, as below $XDG_RUNTIME_DIR; made when missing
	Log        *slog.Logger
	// Podman is a command line of Podman as the node's user; nil: podman of the
	// PATH. It is needed only to remove what other users of containers left.
	Podman func(ctx context.Context, args ...string) *exec.Cmd
}

// Source is where the contents of volumes come from. An object that is not
// there is a NotFound error of apimachinery. It is an alias: package pod names
// the same type.
type Source = interface {
	ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
}

// Volumes makes and removes the volumes of pods. Its methods are safe for
// concurrent use for different pods.
type Volumes struct{ config Config }

// New returns Volumes. It does no I/O.
func New(config Config) *Volumes {
	if config.Podman == nil {
		config.Podman = func(ctx context.Context, args ...string) *exec.Cmd {
			return exec.CommandContext(ctx, "podman", args...)
		}
	}
	return &Volumes{config: config}
}

// Mount makes sure of all of the pod's volumes, bringing configMaps and secrets
// up to date, and returns by container what is to be mounted. It is idempotent.
// A missing object or key that is not optional is a *container.MissingError.
func (v *Volumes) Mount(ctx context.Context, pod *corev1.Pod, source Source) (map[string][]container.Mount, error) {
	made := map[string]place{}
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		at, err := v.make(ctx, pod, volume, source)
		if err != nil {
			return nil, fmt.Errorf("cannot set up volume %q: %w", volume.Name, err)
		}
		made[volume.Name] = at
	}
	mounts := map[string][]container.Mount{}
	for _, c := range append(append([]corev1.Container{}, pod.Spec.InitContainers...), pod.Spec.Containers...) {
		for _, m := range c.VolumeMounts {
			at, ok := made[m.Name]
			switch {
			case !ok:
				return nil, fmt.Errorf("container %s mounts volume %q, which the pod has not", c.Name, m.Name)
			case m.SubPath != "" || m.SubPathExpr != "":
				return nil, fmt.Errorf("container %s: subPath of volume %q is not supported", c.Name, m.Name)
			}
			mounts[c.Name] = append(mounts[c.Name], container.Mount{
				Source: at.path, Target: m.MountPath, ReadOnly: m.ReadOnly || at.readOnly,
			})
		}
	}
	return mounts, nil
}

// place is a volume that was made.
type place struct {
	path     string
	readOnly bool // for all containers
}

// make makes one volume. A new type of volume is a case here and a file.
func (v *Volumes) make(ctx context.Context, pod *corev1.Pod, volume *corev1.Volume, source Source) (place, error) {
	switch {
	case volume.EmptyDir != nil:
		return v.emptyDir(pod, volume.Name, volume.EmptyDir)
	case volume.ConfigMap != nil:
		files, err := configMap(ctx, source, pod.Namespace, volume.ConfigMap)
		return v.project(pod, volume.Name, files, err)
	case volume.Secret != nil:
		files, err := secret(ctx, source, pod.Namespace, volume.Secret)
		return v.project(pod, volume.Name, files, err)
	}
	return place{}, errors.New("this type of volume is not supported")
}

// project keeps files' volume in the runtime directory.
func (v *Volumes) project(pod *corev1.Pod, name string, files map[string]file, err error) (place, error) {
	if err != nil {
		return place{}, err
	}
	dir, err := directory(v.config.RuntimeDir, string(pod.UID), name)
	if err != nil {
		return place{}, err
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) {
		return place{}, err
	}
	return place{path: dir, readOnly: true}, write(dir, files)
}

// directory returns where a pod's volume lies below root, its parents made for
// nobody but the agent's user.
func directory(root, uid, name string) (string, error) {
	if err := local(uid); err != nil {
		return "", err
	}
	if err := local(name); err != nil {
		return "", err
	}
	parent := filepath.Join(root, uid)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", err
	}
	return filepath.Join(parent, name), nil
}
