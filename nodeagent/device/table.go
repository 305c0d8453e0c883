package device

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/hw"
	"bramble.dev/bramble/nodeagent/container"
)

// ErrUnavailable is why a container cannot have what it asks for: the node has not so
// much of it, or others have it.
var ErrUnavailable = errors.New("the node has no such device to give")

// patience is how long a container waits for what the board and the engine say first.
const patience = 10 * time.Second

// Table is who has which device. It is safe for concurrent use. Before Load it gives
// nothing.
type Table struct {
	root   string
	loaded chan struct{} // closed by Load

	mu     sync.Mutex // protects what follows
	offers []offer
	holds  []hold
}

// hold is a device that a container has.
type hold struct {
	uid, container string
	container.Device
}

// New returns a table of devices whose nodes are below root, "" is "/".
func New(root string) *Table {
	return &Table{root: strings.TrimRight(root, "/"), loaded: make(chan struct{})}
}

// Load takes what the board has, and what the engine's containers have already. It is
// called once.
func (t *Table) Load(devices []hw.Device, pods []container.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range pods {
		newest := map[string]container.State{}
		for _, c := range p.Containers {
			if old, ok := newest[c.Name]; !ok || old.Restarts < c.Restarts {
				newest[c.Name] = c
			}
		}
		for _, name := range slices.Sorted(maps.Keys(newest)) {
			for _, d := range newest[name].Devices {
				t.holds = append(t.holds, hold{uid: p.UID, container: name, Device: d})
			}
		}
	}
	t.set(devices)
	close(t.loaded)
}

// Set takes what the board has now. It returns the pods that have a device of which
// something is new: it is gone, or elsewhere, or there again.
func (t *Table) Set(devices []hw.Device) (uids []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := make([]string, len(t.holds))
	for i, h := range t.holds {
		before[i] = t.place(h)
	}
	t.set(devices)
	for i, h := range t.holds {
		if t.place(h) != before[i] && !slices.Contains(uids, h.uid) {
			uids = append(uids, h.uid)
		}
	}
	return uids
}

// set is Set; the caller holds mu.
func (t *Table) set(devices []hw.Device) {
	t.offers = nil
	for _, d := range devices {
		o := offerOf(d)
		if at := slices.IndexFunc(t.offers, func(other offer) bool { return other.Path == o.Path }); at >= 0 && len(o.resources) > 0 {
			// Two sides of one thing, as a Coral at USB is: who has it as one, has it as the other.
			t.offers[at].resources = append(t.offers[at].resources, o.resources...)
		} else if len(o.resources) > 0 {
			t.offers = append(t.offers, o)
		}
	}
	keys := map[string]int{}
	for _, o := range t.offers {
		keys[o.key]++
	}
	for i, o := range t.offers {
		if keys[o.key] > 1 { // of one maker, without numbers of their own
			t.offers[i].key = o.kernels
		}
	}
}

// place is where a held device is now; "" is nowhere. The caller holds mu.
func (t *Table) place(h hold) string {
	if o := t.find(h.Key); o != nil {
		return o.Path + " " + o.Number
	}
	return ""
}

// find is the device of a key; nil if it is not there. The caller holds mu.
func (t *Table) find(key string) *offer {
	var found *offer
	for i := range t.offers {
		switch o := &t.offers[i]; {
		case o.key == key:
			return o
		case found == nil && named(key) && slices.Contains(o.resources, key):
			found = o
		}
	}
	return found
}

// Resources is how much there is to ask for, and how much of it is allocatable: what
// was given under another of its resources is not. known is false before Load.
func (t *Table) Resources() (capacity, allocatable map[corev1.ResourceName]int64, known bool) {
	select {
	case <-t.loaded:
	default:
		return nil, nil, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	capacity, allocatable = map[corev1.ResourceName]int64{}, map[corev1.ResourceName]int64{}
	for i, o := range t.offers {
		for _, r := range o.resources {
			name := corev1.ResourceName(r)
			capacity[name]++
			allocatable[name] += 0
			if as := t.heldAs(&t.offers[i]); as == "" || as == r {
				allocatable[name]++
			}
		}
	}
	return capacity, allocatable, true
}

// heldAs is as which resource somebody has a device; "" if nobody has. The caller
// holds mu.
func (t *Table) heldAs(o *offer) string {
	for _, h := range t.holds {
		if t.find(h.Key) == o {
			return h.Resource
		}
	}
	return ""
}

// Allocate gives a container of a pod the devices that it asks for, and those that it
// had before again as far as they are there. It gives all or none. What it gives is
// the container's until the pod is released; an init container shares with those of
// its pod that do not run when it does. The error wraps ErrUnavailable.
func (t *Table) Allocate(ctx context.Context, pod *corev1.Pod, spec *corev1.Container) ([]container.Device, error) {
	wants := wanted(spec.Resources.Limits)
	if len(wants) == 0 {
		return nil, nil
	}
	if err := t.wait(ctx); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	uid := string(pod.UID)
	var had, kept []hold
	for _, h := range t.holds {
		switch {
		case h.uid == uid && h.container == spec.Name:
			had = append(had, h)
		case h.uid != uid || together(pod, h.container, spec.Name):
			kept = append(kept, h)
		}
	}
	taken := func(o *offer) bool { return slices.ContainsFunc(kept, func(h hold) bool { return t.find(h.Key) == o }) }
	var given []container.Device
	for _, w := range wants {
		for _, o := range t.candidates(w.resource, had) {
			if w.count > 0 && !taken(o) {
				d := t.deviceOf(o, w.resource)
				given, kept = append(given, d), append(kept, hold{uid: uid, container: spec.Name, Device: d})
				w.count--
			}
		}
		if w.count > 0 {
			return nil, t.shortage(w)
		}
	}
	t.holds = kept
	return given, nil
}

// wait waits for Load.
func (t *Table) wait(ctx context.Context) error {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-t.loaded:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-limit.C:
		return fmt.Errorf("%w: it does not know its devices yet", ErrUnavailable)
	}
}

// together says whether two containers of a pod may run at once: an init container
// that is no sidecar runs beside sidecars only.
func together(pod *corev1.Pod, a, b string) bool {
	alone, sidecar := map[string]bool{}, map[string]bool{}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		lasting := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		alone[c.Name], sidecar[c.Name] = !lasting, lasting
	}
	return (!alone[a] || sidecar[b]) && (!alone[b] || sidecar[a])
}

// candidates are the devices that are a resource; what the container had, first. The
// caller holds mu.
func (t *Table) candidates(resource string, had []hold) []*offer {
	var first, others []*offer
	for i := range t.offers {
		o := &t.offers[i]
		switch {
		case !slices.Contains(o.resources, resource):
		case slices.ContainsFunc(had, func(h hold) bool { return t.find(h.Key) == o && h.Resource == resource }):
			first = append(first, o)
		default:
			others = append(others, o)
		}
	}
	return append(first, others...)
}

// shortage says why a want is not met. The caller holds mu.
func (t *Table) shortage(w want) error {
	there, taken := 0, 0
	for i := range t.offers {
		if o := &t.offers[i]; slices.Contains(o.resources, w.resource) {
			there++
			if t.heldAs(o) != "" {
				taken++
			}
		}
	}
	return fmt.Errorf("%w: of %s it has %d, and %d of them given to containers", ErrUnavailable, w.resource, there, taken)
}

// deviceOf is what a container is given of a device: its nodes as they are named on
// the node, and under the name that stays.
func (t *Table) deviceOf(o *offer, resource string) container.Device {
	d := container.Device{Resource: resource, Key: o.key, Class: string(o.Class), Number: o.Number}
	for _, path := range append([]string{o.Path}, o.More...) {
		d.Nodes = append(d.Nodes, container.Node{Source: t.root + path, Target: path})
	}
	if strings.HasPrefix(o.Stable, "/dev/") && o.Stable != o.Path {
		d.Nodes = append(d.Nodes, container.Node{Source: t.root + o.Path, Target: o.Stable})
	}
	return d
}

// Look says of devices that a container was given which are gone, and which are at
// another node now, or at one of another number: there the container finds nothing.
func (t *Table) Look(given []container.Device) (gone, moved []container.Device) {
	select {
	case <-t.loaded:
	default:
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, d := range given {
		switch o := t.find(d.Key); {
		case o == nil:
			gone = append(gone, d)
		case o.Number != d.Number || len(d.Nodes) > 0 && d.Nodes[0].Target != o.Path:
			moved = append(moved, d)
		}
	}
	return gone, moved
}

// Release frees what a pod's containers have. It reports whether that was something.
func (t *Table) Release(uid string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := len(t.holds)
	t.holds = slices.DeleteFunc(t.holds, func(h hold) bool { return h.uid == uid })
	return len(t.holds) != before
}

// want is how many of a resource a container asks for.
type want struct {
	resource string
	count    int64
}

// wanted are the devices among what a container asks for, those by name first: what
// is asked for by class can be another.
func wanted(asked corev1.ResourceList) (wants []want) {
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if count := asked.Name(name, "").Value(); strings.HasPrefix(string(name), Domain) && count > 0 {
			wants = append(wants, want{string(name), count})
		}
	}
	slices.SortStableFunc(wants, func(a, b want) int {
		switch {
		case named(a.resource) == named(b.resource):
			return 0
		case named(a.resource):
			return -1
		}
		return 1
	})
	return wants
}
