package pod

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/network/netapi"
)

// HostPort is a port of the node that leads to one of a pod's.
type HostPort = netapi.HostPort

// parts returns a container's mounts, with those of a volume's part made.
func (w *worker) parts(ctx context.Context, spec container.Spec) ([]container.Mount, error) {
	values := make(map[string]string, len(spec.Env))
	for _, e := range spec.Env {
		values[e.Name] = e.Value
	}
	mounts := make([]container.Mount, 0, len(spec.Mounts))
	for i, m := range spec.Mounts {
		subPath := m.SubPath
		if m.SubPathExpr != "" {
			unknown := ""
			subPath = Expand(m.SubPathExpr, func(name string) (string, bool) {
				value, ok := values[name]
				if !ok {
					unknown = name
				}
				return value, ok
			})
			if unknown != "" {
				return nil, fmt.Errorf("subPathExpr %q: the container has no variable %s", m.SubPathExpr, unknown)
			}
		}
		if subPath != "" {
			source, err := w.set.cfg.Volumes.Part(ctx, w.uid, spec.Name, i, m, subPath)
			if err != nil {
				return nil, err
			}
			m.Source = source
		}
		mounts = append(mounts, m)
	}
	return mounts, nil
}

// remakeParts makes sure of the parts of a container that was made in an earlier
// turn, perhaps before the machine's start.
func (w *worker) remakeParts(ctx context.Context, d Desired, name string) error {
	has := false
	for _, m := range w.mounts[name] {
		has = has || m.SubPath != "" || m.SubPathExpr != ""
	}
	if !has || w.made[name] != "" {
		return nil
	}
	env, err := environment(ctx, d, surroundings{
		hostIP: w.set.cfg.HostIP(), source: w.set.cfg.Source, allocatable: w.set.cfg.Allocatable(),
	}, specOf(d.Pod, name))
	if err != nil {
		return err
	}
	_, err = w.parts(ctx, container.Spec{Name: name, Env: env, Mounts: w.mounts[name]})
	return err
}

// hostPorts are the ports of the node that a pod wants.
func hostPorts(pod *corev1.Pod) []HostPort {
	var ports []HostPort
	for _, m := range members(pod) {
		if m.role == initial {
			continue
		}
		for _, p := range m.spec.Ports {
			if p.HostPort != 0 {
				ports = append(ports, HostPort{Protocol: string(p.Protocol), IP: p.HostIP, Port: int(p.HostPort), PodPort: int(p.ContainerPort)})
			}
		}
	}
	return ports
}

// tellUnenforced says that a container's limits are not held on this node.
func (w *worker) tellUnenforced(d Desired, spec *corev1.Container) {
	var idle []string
	for _, name := range w.set.cfg.Unenforced() {
		if limit, set := spec.Resources.Limits[corev1.ResourceName(name)]; set && !limit.IsZero() {
			idle = append(idle, name)
		}
	}
	if len(idle) > 0 {
		w.event(d, spec.Name, corev1.EventTypeWarning, "ResourceLimitsUnenforced", fmt.Sprintf(
			"Limits of %s are not held on this node: delegate these cgroup controllers to its user", strings.Join(idle, ", ")))
	}
}

// outdate notes that the pod's volumes may be behind, if it has such volumes.
func (w *worker) outdate() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.desired.Pod == nil {
		return false
	}
	for i := range w.desired.Pod.Spec.Volumes {
		v := &w.desired.Pod.Spec.Volumes[i]
		if v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil || v.Projected != nil {
			w.outdated = true
			return true
		}
	}
	return false
}

// follow brings the volumes up to date if they may be behind.
func (w *worker) follow(ctx context.Context) {
	w.mu.Lock()
	d, due := w.desired, w.outdated
	w.outdated = false
	w.mu.Unlock()
	if due && !d.leaving() && w.memory.Mounted {
		w.set.cfg.Volumes.Update(ctx, d.Pod, w.set.cfg.Source)
	}
}
