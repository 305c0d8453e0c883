package volume

import (
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
)

// emptyDir makes a directory that every user of the pod's containers may write
// to, as the kubelet's. With medium Memory it lies in the runtime directory: a
// tmpfs of each container's own would not be shared by them. Its sizeLimit is
// not enforced.
func (v *Volumes) emptyDir(pod *corev1.Pod, name string, from *corev1.EmptyDirVolumeSource) (place, error) {
	root := v.config.Dir
	switch from.Medium {
	case corev1.StorageMediumDefault:
	case corev1.StorageMediumMemory:
		root = v.config.RuntimeDir
	default:
		return place{}, fmt.Errorf("emptyDir medium %q is not supported", from.Medium)
	}
	dir, err := directory(root, string(pod.UID), name)
	if err != nil {
		return place{}, err
	}
	err = os.Mkdir(dir, 0o777)
	if os.IsExist(err) {
		return place{path: dir}, nil // its mode may be the containers' by now
	}
	if err != nil {
		return place{}, err
	}
	if from.SizeLimit != nil && !from.SizeLimit.IsZero() {
		v.config.Log.Warn("sizeLimit of an emptyDir is not enforced", "pod", pod.Namespace+"/"+pod.Name, "volume", name, "limit", from.SizeLimit.String())
	}
	return place{path: dir}, os.Chmod(dir, 0o777) // whatever the umask
}
