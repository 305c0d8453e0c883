package nodeagent

import (
	"context"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/pod"
	"bramble.dev/bramble/nodeagent/report"
	"bramble.dev/bramble/nodeagent/volume"
)

// followEvery is how old the contents of configMaps and secrets in volumes may
// be, as the kubelet's. The server is asked; the disk is not.
const followEvery = 45 * time.Second

// MountCommand is the command of this program that Podman runs in its
// namespaces: it calls volume.Inside.
const MountCommand = "mount-volumes"

func (a *Agent) makeVolumes() *volume.Volumes {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return volume.New(volume.Config{
		Dir: filepath.Join(a.cfg.StateDir, "volumes"), RuntimeDir: a.cfg.own("volumes"), BindDir: a.cfg.own("binds"),
		Inside: []string{self, MountCommand}, Protected: a.protected(), Log: a.log,
		Resource: func(p *corev1.Pod, ref *corev1.ResourceFieldSelector) (string, error) {
			return pod.ResourceValue(p, ref, a.allocatable())
		},
	})
}

// protected are the paths of which a container with one of them would have the
// node: our state and the server's, what is in the runtime directory (Podman's
// socket, ours), Podman's store and settings, the user's keys, and /proc, whose
// links lead anywhere.
func (a *Agent) protected() []string {
	paths := []string{"/proc", "/var/lib/bramble", "/etc/bramble", a.cfg.StateDir, a.cfg.RuntimeDir, a.cfg.PodmanSocket, a.cfg.NetworkSock}
	if home, err := os.UserHomeDir(); err == nil {
		for _, name := range []string{".config", ".local/share/containers", ".ssh"} {
			paths = append(paths, filepath.Join(home, name))
		}
	}
	return paths
}

func (a *Agent) allocatable() corev1.ResourceList {
	return report.NodeStatus(a.facts.NodeName, a.node.System.Read(), report.Health{}, nil, time.Now()).Allocatable
}

// followVolumes keeps the volumes of pods up to date until ctx ends.
func (a *Agent) followVolumes(ctx context.Context) error {
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		if a.dialer.Connected() {
			a.workers.UpdateVolumes()
		}
	}
}
