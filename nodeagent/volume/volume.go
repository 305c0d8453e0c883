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
	// PATH. It removes what other users of containers left, and runs Inside.
	Podman func(ctx context.Context, args ...string) *exec.Cmd
	// Inside is the command line that calls func Inside, for Podman to run in its
	// namespaces. Without it fsGroup, hostPath, subPath and limited volumes in
	// memory are errors.
	Inside []string
	// BindDir is where paths of the node and parts of volumes are mounted, inside
	// Podman's mount namespace; below $XDG_RUNTIME_DIR.
	BindDir string
	// Protected are the paths of the node that no container may have by hostPath.
	Protected []string
	// Resource is the downward API's value of a resource of a container.
	Resource func(pod *corev1.Pod, ref *corev1.ResourceFieldSelector) (string, error)
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
			if !ok {
				return nil, fmt.Errorf("container %s mounts volume %q, which the pod has not", c.Name, m.Name)
			}
			mounts[c.Name] = append(mounts[c.Name], container.Mount{
				Source: at.path, Target: m.MountPath, ReadOnly: m.ReadOnly || at.readOnly,
				SubPath: m.SubPath, SubPathExpr: m.SubPathExpr, Fixed: at.readOnly,
			})
		}
	}
	return mounts, nil
}

// Update brings the pod's configMaps, secrets and the like up to date, as far as
// they can be had: an object that is gone, or out of reach, leaves its volume as
// it was. Mount must have been done.
func (v *Volumes) Update(ctx context.Context, pod *corev1.Pod, source Source) {
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		if !Follows(volume) {
			continue
		}
		if _, err := v.make(ctx, pod, volume, source); err != nil {
			v.config.Log.Debug("a volume is left as it is", "pod", pod.Namespace+"/"+pod.Name, "volume", volume.Name, "err", err)
		}
	}
}

// Follows reports whether a volume follows what it is made from.
func Follows(volume *corev1.Volume) bool {
	return volume.ConfigMap != nil || volume.Secret != nil || volume.DownwardAPI != nil || volume.Projected != nil
}

// Part mounts a part of a volume for one of a pod's containers, and returns where
// it is: what the container is to mount in the volume's place. index tells the
// container's mounts apart. A directory that is missing is made in volumes that
// can be written to. What is mounted is what was there at this moment.
func (v *Volumes) Part(ctx context.Context, uid, name string, index int, m container.Mount, subPath string) (string, error) {
	if err := inVolume(subPath); err != nil {
		return "", err
	}
	dir, err := directory(v.config.BindDir, uid, fmt.Sprintf("part-%s-%d", name, index))
	if err != nil {
		return "", err
	}
	err = v.inside(ctx, job{Bind: &bindJob{Root: m.Source, Path: subPath, Make: !m.Fixed, Target: dir}})
	if err != nil {
		return "", fmt.Errorf("cannot mount a part of a volume at %s: %w", m.Target, err)
	}
	return dir, nil
}

// place is a volume that was made.
type place struct {
	path     string
	readOnly bool // for all containers
}

// make makes one volume. A new type of volume is a case here and a file.
func (v *Volumes) make(ctx context.Context, pod *corev1.Pod, volume *corev1.Volume, source Source) (place, error) {
	var files map[string]file
	var err error
	switch {
	case volume.EmptyDir != nil:
		return v.emptyDir(ctx, pod, volume.Name, volume.EmptyDir)
	case volume.HostPath != nil:
		return v.hostPath(ctx, pod, volume.Name, volume.HostPath)
	case volume.ConfigMap != nil:
		files, err = configMap(ctx, source, pod.Namespace, volume.ConfigMap)
	case volume.Secret != nil:
		files, err = secret(ctx, source, pod.Namespace, volume.Secret)
	case volume.DownwardAPI != nil:
		files, err = v.downward(pod, volume.DownwardAPI.Items, volume.DownwardAPI.DefaultMode)
	case volume.Projected != nil:
		files, err = v.projected(ctx, pod, source, volume.Projected)
	default:
		return place{}, errors.New("this type of volume is not supported")
	}
	if err != nil {
		return place{}, err
	}
	return v.project(ctx, pod, volume.Name, files)
}

// hostPath mounts a path of the node where the pod's containers find it.
func (v *Volumes) hostPath(ctx context.Context, pod *corev1.Pod, name string, from *corev1.HostPathVolumeSource) (place, error) {
	dir, err := directory(v.config.BindDir, string(pod.UID), "volume-"+name)
	if err != nil {
		return place{}, err
	}
	j := &bindJob{Path: filepath.Clean(from.Path), Target: dir, Protected: v.config.Protected}
	if from.Type != nil {
		j.Type = *from.Type
	}
	return place{path: dir}, v.inside(ctx, job{Bind: j})
}

// project keeps files' volume in the runtime directory. With an fsGroup they are
// that group's, which may read them.
func (v *Volumes) project(ctx context.Context, pod *corev1.Pod, name string, files map[string]file) (place, error) {
	dir, err := directory(v.config.RuntimeDir, string(pod.UID), name)
	if err != nil {
		return place{}, err
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) {
		return place{}, err
	}
	own := func(string) error { return nil }
	if gid := fsGroup(pod); gid != nil {
		for path, f := range files {
			f.mode |= 0o440
			files[path] = f
		}
		own = func(fresh string) error {
			return v.inside(ctx, job{Own: &ownJob{Dir: fresh, GID: *gid}})
		}
	}
	return place{path: dir, readOnly: true}, write(dir, files, own)
}

func fsGroup(pod *corev1.Pod) *int64 {
	if pod.Spec.SecurityContext == nil {
		return nil
	}
	return pod.Spec.SecurityContext.FSGroup
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
