package volume

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
)

// emptyDir makes a directory that every user of the pod's containers may write
// to, as the kubelet's, and gives it to the pod's fsGroup. With medium Memory it
// lies in the runtime directory or, with a sizeLimit, is a file system of that
// size: a tmpfs of each container's own would not be shared by them.
func (v *Volumes) emptyDir(ctx context.Context, pod *corev1.Pod, name string, from *corev1.EmptyDirVolumeSource) (place, error) {
	root := v.config.Dir
	limited := from.SizeLimit != nil && !from.SizeLimit.IsZero()
	switch {
	case from.Medium == corev1.StorageMediumMemory && limited:
		dir, err := directory(v.config.BindDir, string(pod.UID), "volume-"+name)
		if err != nil {
			return place{}, err
		}
		return place{path: dir}, v.inside(ctx, job{Tmpfs: &tmpfsJob{Target: dir, Bytes: from.SizeLimit.Value(), GID: fsGroup(pod)}})
	case from.Medium == corev1.StorageMediumMemory:
		root = v.config.RuntimeDir
	case from.Medium != corev1.StorageMediumDefault:
		return place{}, fmt.Errorf("emptyDir medium %q is not supported", from.Medium)
	case limited:
		return place{}, fmt.Errorf("emptyDir sizeLimit is held only with medium Memory: remove it, or set the medium")
	}
	dir, err := directory(root, string(pod.UID), name)
	if err != nil {
		return place{}, err
	}
	if _, err := os.Lstat(dir); err == nil {
		return place{path: dir}, nil // its mode may be the containers' by now
	}
	// Under a name of its own until it is ready.
	fresh := dir + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return place{}, err
	}
	if err := os.Mkdir(fresh, 0o777); err != nil {
		return place{}, err
	}
	if err := os.Chmod(fresh, 0o777); err != nil { // whatever the umask
		return place{}, err
	}
	if gid := fsGroup(pod); gid != nil {
		if err := v.inside(ctx, job{Own: &ownJob{Dir: fresh, GID: *gid}}); err != nil {
			return place{}, err
		}
	}
	return place{path: dir}, os.Rename(fresh, dir)
}
