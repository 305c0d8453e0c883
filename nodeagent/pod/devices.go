package pod

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/container"
)

// addDevices adds variables that tell a container what it was given by class:
// BRAMBLE_SERIAL=/dev/ttyUSB0, more of a class with commas between. A variable that
// the pod sets stays.
func addDevices(env []container.Env, devices []container.Device) []container.Env {
	set := len(env)
	for _, d := range devices {
		if len(d.Nodes) == 0 {
			continue
		}
		name := "BRAMBLE_" + strings.ToUpper(d.Class)
		at := slices.IndexFunc(env, func(e container.Env) bool { return e.Name == name })
		switch {
		case at < 0:
			env = append(env, container.Env{Name: name, Value: d.Nodes[0].Target})
		case at >= set:
			env[at].Value += "," + d.Nodes[0].Target
		}
	}
	return env
}

// lookAtDevices tells, once for each container, of devices that are gone, without
// which it runs on, and of those that came back elsewhere: such a container is to end
// and to be made anew, where it would be after any other end.
func (w *worker) lookAtDevices(d Desired) {
	if d.leaving() {
		return
	}
	there := map[string]bool{}
	for _, m := range members(d.Pod) {
		c, _ := w.memory.latest(m.spec.Name)
		if there[c.ID] = true; c.Phase != container.Running || len(c.Devices) == 0 {
			continue
		}
		gone, moved := w.set.cfg.Devices.Look(c.Devices)
		for _, device := range gone {
			w.tellOnce(d, c, corev1.EventTypeWarning, "DeviceGone", fmt.Sprintf(
				"Device %s, which container %s has as %s, is gone from the node", nodeOf(device), c.Name, device.Resource))
		}
		for _, device := range moved {
			text := fmt.Sprintf("Device %s of container %s came back as another node", nodeOf(device), c.Name)
			if m.policy == corev1.RestartPolicyAlways {
				w.memory.condemn(c.ID, "its device "+strings.ReplaceAll(nodeOf(device), "%", "%%")+" came back as another node")
				w.tellOnce(d, c, corev1.EventTypeNormal, "DeviceMoved", text+", and the container is made anew")
			} else {
				w.tellOnce(d, c, corev1.EventTypeWarning, "DeviceMoved", text+", which it does not have: its restart policy does not let it begin anew")
			}
		}
	}
	maps.DeleteFunc(w.told, func(id string, _ []string) bool { return !there[id] })
}

func nodeOf(d container.Device) string {
	if len(d.Nodes) == 0 {
		return d.Key
	}
	return d.Nodes[0].Target
}

// tellOnce makes an event of a container that was not made before.
func (w *worker) tellOnce(d Desired, c container.State, eventType, reason, text string) {
	if slices.Contains(w.told[c.ID], reason+text) {
		return
	}
	if w.told == nil {
		w.told = map[string][]string{}
	}
	w.told[c.ID] = append(w.told[c.ID], reason+text)
	w.event(d, c.Name, eventType, reason, text)
}

// noDevices is of a node that gives none.
type noDevices struct{}

func (noDevices) Allocate(context.Context, *corev1.Pod, *corev1.Container) ([]container.Device, error) {
	return nil, nil
}
func (noDevices) Look([]container.Device) (gone, moved []container.Device) { return nil, nil }
func (noDevices) Release(string)                                           {}
