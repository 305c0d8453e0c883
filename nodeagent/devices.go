package nodeagent

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/hw"
	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/device"
	"bramble.dev/bramble/nodeagent/report"
)

// rescanRecorded is how often the devices of a recorded board are looked for.
const rescanRecorded = 10 * time.Second

// devices are the workers' pod.Devices: what is given and freed changes what the node
// has to give.
type devices struct {
	*device.Table
	changed func() // does not block
}

// Allocate implements pod.Devices.
func (d *devices) Allocate(ctx context.Context, p *corev1.Pod, spec *corev1.Container) ([]container.Device, error) {
	given, err := d.Table.Allocate(ctx, p, spec)
	if len(given) > 0 {
		d.changed()
	}
	return given, err
}

// Release implements pod.Devices.
func (d *devices) Release(uid string) {
	if d.Table.Release(uid) {
		d.changed()
	}
}

// amounts are what the node reports of its devices; nil before they are known.
func (d *devices) amounts() *report.Devices {
	capacity, allocatable, known := d.Resources()
	if !known {
		return nil
	}
	return &report.Devices{Capacity: capacity, Allocatable: allocatable}
}

// boardLabels are the node's labels by its board, once that has been read.
func (a *Agent) boardLabels() (labels map[string]string, known bool) {
	s := a.board.Snapshot()
	if !s.Complete {
		return nil, false
	}
	return report.BoardLabels(s), true
}

// followDevices keeps the table of devices equal to the board, from when the board has
// been read and the engine has said what its containers have.
func (a *Agent) followDevices(ctx context.Context) error {
	changed := a.board.Changed()
	for !a.board.Snapshot().Complete {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
			changed = a.board.Changed()
		}
	}
	pods, err := a.engine.List(ctx)
	for ; err != nil; pods, err = a.engine.List(ctx) {
		if pause(ctx, enginePause); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	last := a.board.Snapshot().Devices
	a.devices.Load(last, pods)
	a.node.Look()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
			changed = a.board.Changed()
		}
		now := a.board.Snapshot().Devices
		if slices.EqualFunc(last, now, sameLook) {
			continue
		}
		last = now
		for _, uid := range a.devices.Set(now) {
			a.workers.Nudge(uid)
		}
		a.node.Look()
	}
}

// enginePause is between attempts to list what the engine has.
const enginePause = time.Second

// sameLook says that a device was not looked for again.
func sameLook(a, b hw.Device) bool {
	return a.Class == b.Class && a.Name == b.Name && a.Path == b.Path && a.Number == b.Number && a.Access.At == b.Access.At
}
