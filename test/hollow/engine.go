package hollow

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/pod"
	"bramble.dev/bramble/nodeagent/report"
)

// engine is where pods would run: what is bound runs at once, what is deleted has
// ended at once. It is the store that the agent's reflector fills, and composes
// statuses by the agent's own code.
type engine struct {
	pods   *report.Pods
	events *report.Events

	mu    sync.Mutex // protects what follows
	next  netip.Addr
	known map[string]*played // by uid
}

// played is one pod.
type played struct {
	address netip.Addr
	began   time.Time
	ending  bool
}

func newEngine(addresses netip.Prefix, pods *report.Pods, events *report.Events) *engine {
	return &engine{pods: pods, events: events, next: addresses.Addr().Next().Next(), known: map[string]*played{}}
}

var _ cache.ReflectorStore = (*engine)(nil)

// Add follows cache.ReflectorStore.
func (e *engine) Add(obj any) error { return e.Update(obj) }

// Update follows cache.ReflectorStore.
func (e *engine) Update(obj any) error {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("cannot take a %T for a pod", obj)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	uid := string(p.UID)
	known := e.known[uid]
	switch {
	case known == nil && p.DeletionTimestamp != nil:
		e.known[uid] = &played{ending: true}
		e.pods.Gone(uid, p)
	case known == nil:
		e.start(p)
	case p.DeletionTimestamp != nil && !known.ending:
		known.ending = true
		e.pods.Status(p, e.status(p, known, container.Exited))
		e.pods.Gone(uid, p)
	}
	return nil
}

// start says of a pod what an agent says whose images are there: that it is
// taken up, and that it runs.
func (e *engine) start(p *corev1.Pod) {
	known := &played{address: e.next, began: stamp()}
	e.next = e.next.Next()
	e.known[string(p.UID)] = known
	e.pods.Status(p, e.status(p, known, ""))
	for _, c := range p.Spec.Containers {
		e.events.Pod(p, c.Name, corev1.EventTypeNormal, "Pulled", fmt.Sprintf("Container image %q already present on machine", c.Image))
		e.events.Pod(p, c.Name, corev1.EventTypeNormal, "Created", "Created container: "+c.Name)
		e.events.Pod(p, c.Name, corev1.EventTypeNormal, "Started", "Started container "+c.Name)
	}
	e.pods.Status(p, e.status(p, known, container.Running))
}

// status is what the agent says of a pod whose containers are in phase; "": there
// are none yet.
func (e *engine) status(p *corev1.Pod, known *played, phase container.Phase) corev1.PodStatus {
	uid := string(p.UID)
	o := pod.Observed{
		Engine:   container.Pod{UID: uid, Namespace: p.Namespace, Name: p.Name, Running: true},
		Attached: true, Mounted: true, StartTime: known.began, Now: stamp(),
	}
	for _, c := range p.Spec.Containers {
		if phase == "" {
			break
		}
		state := container.State{
			ID: digest(uid + c.Name), PodUID: uid, Name: c.Name, Phase: phase, PID: 1,
			Image: c.Image, ImageID: digest(c.Image), CreatedAt: known.began, StartedAt: known.began,
		}
		if phase == container.Exited {
			state.FinishedAt = stamp()
		}
		o.Engine.Containers = append(o.Engine.Containers, state)
	}
	return pod.Status(pod.Desired{Pod: p, Address: known.address}, o, "192.0.2.1")
}

// digest is an id as engines make them.
func digest(of string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(of))) }

// forget is called when the server has a pod no more.
func (e *engine) forget(uid string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.known, uid)
}

// Delete follows cache.ReflectorStore.
func (e *engine) Delete(obj any) error {
	if p, ok := obj.(*corev1.Pod); ok {
		e.pods.Forget(string(p.UID))
		e.forget(string(p.UID))
	}
	return nil
}

// Replace follows cache.ReflectorStore.
func (e *engine) Replace(list []any, _ string) error {
	present := map[string]bool{}
	for _, obj := range list {
		if p, ok := obj.(*corev1.Pod); ok {
			present[string(p.UID)] = true
		}
		if err := e.Update(obj); err != nil {
			return err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for uid := range e.known {
		if !present[uid] {
			e.pods.Forget(uid)
			delete(e.known, uid)
		}
	}
	return nil
}

// Resync follows cache.ReflectorStore.
func (e *engine) Resync() error { return nil }
