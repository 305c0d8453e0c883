package pod_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/pod"
)

// engine is a container engine in memory. It holds what must hold: it refuses a
// second container of a name and count, and notes when two of a name run.
type engine struct {
	mu        sync.Mutex
	pods      map[string]*container.Pod
	made      int
	doubles   int             // times that two incarnations of a container ran at once
	images    map[string]bool // on the node
	pulls     []time.Time
	takes     time.Duration          // of a pull
	sandbox   time.Duration          // that the pod itself takes
	starts    map[string][]time.Time // by container name
	down      bool                   // the service does not answer
	badCmd    map[string]bool        // containers that cannot be started
	unmounted map[string]bool        // ids of containers whose files are lost
	damaged   map[string]bool        // images of which a layer is lost
	removed   []string               // images
	offline   bool                   // the registry does not answer
	full      bool                   // the disk
	stubborn
	nudge  func(uid string)
	dir    string    // in memory, of the machine
	booted time.Time // the machine
	order  []string  // "+name" and "-name" as containers start and are stopped
	pid    int
	early  string // what began out of order
	last   container.Spec
	begun  bool // one of the pod's containers, since the machine's start
}

// stubborn containers ignore SIGTERM.
type stubborn struct{ ignoresTerm bool }

func newEngine() *engine {
	return &engine{
		pods: map[string]*container.Pod{}, images: map[string]bool{"busybox": true},
		starts: map[string][]time.Time{}, badCmd: map[string]bool{}, nudge: func(string) {},
	}
}

func (e *engine) lock() (func(), error) {
	e.mu.Lock()
	if e.down {
		e.mu.Unlock()
		return nil, fmt.Errorf("dial: %w", container.ErrUnavailable)
	}
	return e.mu.Unlock, nil
}

func (e *engine) List(context.Context) ([]container.Pod, error) { panic("workers do not list") }

func (e *engine) Get(_ context.Context, uid string) (container.Pod, error) {
	unlock, err := e.lock()
	if err != nil {
		return container.Pod{}, err
	}
	defer unlock()
	if p := e.pods[uid]; p != nil {
		c := *p
		c.Containers = slices.Clone(p.Containers)
		return c, nil
	}
	return container.Pod{}, nil
}

func (e *engine) Create(_ context.Context, spec container.PodSpec) error {
	<-time.After(e.sandbox)
	unlock, err := e.lock()
	if err != nil {
		return err
	}
	defer unlock()
	p := e.pods[spec.UID]
	if p == nil {
		p = &container.Pod{ID: "pod-" + spec.UID, UID: spec.UID, Namespace: spec.Namespace, Name: spec.Name}
		e.pods[spec.UID] = p
	}
	p.Running = true
	return nil
}

func (e *engine) Remove(_ context.Context, uid string) error {
	unlock, err := e.lock()
	if err != nil {
		return err
	}
	defer unlock()
	delete(e.pods, uid)
	return nil
}

func (e *engine) Halt(_ context.Context, uid string) error {
	unlock, err := e.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if p := e.pods[uid]; p != nil {
		p.Running = false
	}
	return nil
}

func (e *engine) CreateContainer(_ context.Context, spec container.Spec) (string, error) {
	unlock, err := e.lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	p := e.pods[spec.PodUID]
	if p == nil {
		return "", container.ErrNotFound
	}
	for _, c := range p.Containers {
		if c.Name == spec.Name && c.Restarts == spec.Restarts {
			return c.ID, nil
		}
	}
	e.made++
	e.last = spec
	c := container.State{
		ID: fmt.Sprintf("c%d", e.made), PodUID: spec.PodUID, Name: spec.Name, Restarts: spec.Restarts,
		Phase: container.Created, Hash: spec.Hash, Sandbox: spec.Sandbox, ImageID: spec.ImageID, CreatedAt: time.Now(), Devices: spec.Devices,
	}
	p.Containers = append(p.Containers, c)
	return c.ID, nil
}

// change calls f for a container; the caller holds e.mu.
func (e *engine) change(id string, f func(c *container.State)) bool {
	for _, p := range e.pods {
		for i := range p.Containers {
			if p.Containers[i].ID == id {
				f(&p.Containers[i])
				return true
			}
		}
	}
	return false
}

func (e *engine) StartContainer(_ context.Context, id string) error {
	unlock, err := e.lock()
	if err != nil {
		return err
	}
	defer unlock()
	var refused error
	e.change(id, func(c *container.State) {
		if e.unmounted[c.ID] {
			refused = errors.New("mounting storage for container")
			return
		}
		if e.badCmd[c.Name] {
			refused = fmt.Errorf("%w: exec: \"nope\"", container.ErrNoSuchCommand)
			return
		}
		for _, other := range e.pods[c.PodUID].Containers {
			if other.Name == c.Name && other.ID != id && other.Phase == container.Running {
				e.doubles++
			}
		}
		e.pid++
		c.Phase, c.StartedAt, c.FinishedAt, c.PID = container.Running, time.Now(), time.Time{}, e.pid
		e.order = append(e.order, "+"+c.Name)
		e.judge(c)
		e.starts[c.Name] = append(e.starts[c.Name], c.StartedAt)
	})
	return refused
}

// judge notes a start out of order: of a container before init container c has
// succeeded since the machine's start, or of an init container after that.
func (e *engine) judge(started *container.State) {
	done, staged := false, false
	for _, c := range e.pods[started.PodUID].Containers {
		staged = staged || c.Name == "a"
		done = done || c.Name == "c" && c.Phase == container.Exited && c.ExitCode == 0 && !c.FinishedAt.Before(e.booted)
	}
	isInit := started.Name == "a" || started.Name == "c"
	switch {
	case !staged || started.Name == "b":
	case isInit && e.begun:
		e.early = started.Name + " ran again"
	case !isInit && !done:
		e.early = started.Name + " began before the init containers were done"
	case !isInit:
		e.begun = true
	}
}

func (e *engine) StopContainer(ctx context.Context, id string, grace int64) error {
	if e.ignoresTerm {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(grace) * time.Second):
		}
	}
	unlock, err := e.lock()
	if err != nil {
		return err
	}
	defer unlock()
	e.change(id, func(c *container.State) {
		if c.Phase == container.Running {
			c.Phase, c.FinishedAt, c.ExitCode = container.Exited, time.Now(), 143
			e.order = append(e.order, "-"+c.Name)
		}
	})
	return nil
}

func (e *engine) RemoveContainer(_ context.Context, id string) error {
	unlock, err := e.lock()
	if err != nil {
		return err
	}
	defer unlock()
	for _, p := range e.pods {
		p.Containers = slices.DeleteFunc(p.Containers, func(c container.State) bool { return c.ID == id })
	}
	return nil
}

func (e *engine) Image(_ context.Context, ref string) (container.Image, bool, error) {
	unlock, err := e.lock()
	if err != nil {
		return container.Image{}, false, err
	}
	defer unlock()
	if ref == "!" {
		return container.Image{}, false, container.ErrInvalidImageName
	}
	if e.damaged[ref] {
		return container.Image{}, false, fmt.Errorf("layer: %w", container.ErrImageDamaged)
	}
	return container.Image{ID: "sha256:" + ref}, e.images[ref], nil
}

func (e *engine) RemoveImage(_ context.Context, ref string) error {
	unlock, err := e.lock()
	if err != nil {
		return err
	}
	defer unlock()
	e.removed = append(e.removed, ref)
	delete(e.damaged, ref)
	return nil
}

func (e *engine) Pull(ctx context.Context, ref string, _ []container.Credential) (container.Image, error) {
	unlock, err := e.lock()
	if err != nil {
		return container.Image{}, err
	}
	e.pulls = append(e.pulls, time.Now())
	unlock()
	select {
	case <-ctx.Done():
		return container.Image{}, ctx.Err()
	case <-time.After(e.takes):
	}
	if unlock, err = e.lock(); err != nil {
		return container.Image{}, err
	}
	defer unlock()
	switch {
	case e.offline:
		return container.Image{}, container.ErrRegistryUnavailable
	case !e.images[ref]:
		return container.Image{}, container.ErrImageNotFound
	case e.full:
		return container.Image{}, container.ErrNoRoom
	case e.damaged[ref]:
		return container.Image{}, fmt.Errorf("layer: %w", container.ErrImageDamaged)
	}
	return container.Image{ID: "sha256:" + ref}, nil
}

// exit ends the running container of a name, as its process would.
func (e *engine) exit(uid, name string, code int) bool {
	e.mu.Lock()
	found := false
	if p := e.pods[uid]; p != nil {
		for i := range p.Containers {
			c := &p.Containers[i]
			if c.Name == name && c.Phase == container.Running {
				c.Phase, c.FinishedAt, c.ExitCode = container.Exited, time.Now(), code
				found = true
			}
		}
	}
	e.mu.Unlock()
	e.nudge(uid)
	return found
}

// powerCut makes of what runs what Podman 4 makes of it at the next boot.
func (e *engine) powerCut() {
	e.mu.Lock()
	defer e.mu.Unlock()
	os.RemoveAll(e.dir)
	e.booted, e.begun = time.Now(), false
	for _, p := range e.pods {
		p.Running = false
		for i := range p.Containers {
			if p.Containers[i].Phase == container.Running {
				p.Containers[i].Phase = container.Created
			}
		}
	}
}

func (e *engine) containers(uid string) []container.State {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p := e.pods[uid]; p != nil {
		return slices.Clone(p.Containers)
	}
	return nil
}

// prober stands for the probes: a test says what they find. Hooks succeed at
// once, or do what a test says.
type prober struct {
	mu     sync.Mutex
	health map[string]container.Health // by container name; of others all is well
	hooks  []string                    // that were run, by container name
	hook   func(ctx context.Context, name string) error
	asked  map[string]container.Health // what was known before, by container name
}

func (p *prober) Watch(_ string, _ *corev1.Pod, running []container.Probed) map[string]container.Health {
	p.mu.Lock()
	defer p.mu.Unlock()
	health := map[string]container.Health{}
	p.asked = map[string]container.Health{}
	for _, c := range running {
		h, known := p.health[c.Spec.Name]
		if !known {
			h = container.Health{Started: true, Ready: true}
		}
		health[c.ID], p.asked[c.Spec.Name] = h, c.Before
	}
	return health
}

func (p *prober) Hook(ctx context.Context, t container.Target, hook *corev1.LifecycleHandler) error {
	p.mu.Lock()
	p.hooks = append(p.hooks, t.Spec.Name+" "+hook.Exec.Command[0])
	f := p.hook
	p.mu.Unlock()
	if f != nil {
		return f(ctx, t.Spec.Name)
	}
	return nil
}

// say sets what the probes of a container find.
func (p *prober) say(name string, h container.Health) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.health == nil {
		p.health = map[string]container.Health{}
	}
	p.health[name] = h
}

// node is what a pod needs beside the engine: network, volumes, the server.
type node struct {
	prober
	sandbox   time.Duration // that an address and a mount take, each
	mu        sync.Mutex
	attached  map[string]netip.Addr
	mounted   map[string]bool
	status    map[string]corev1.PodStatus
	reasons   []string // of waiting containers, each change
	events    []string // "Reason: message"
	gone      map[string]bool
	forgotten map[string]bool // gone, when it was not wanted any more
	configMap map[string]*corev1.ConfigMap
	broken    bool // the network does not work
}

func newNode() *node {
	return &node{
		attached: map[string]netip.Addr{}, mounted: map[string]bool{}, status: map[string]corev1.PodStatus{},
		gone: map[string]bool{}, forgotten: map[string]bool{}, configMap: map[string]*corev1.ConfigMap{},
	}
}

func (n *node) Attach(_ context.Context, uid string, addr netip.Addr, _ []pod.HostPort) (string, error) {
	<-time.After(n.sandbox)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.broken {
		return "", errors.New("no bridge")
	}
	n.attached[uid] = addr
	return "/netns/" + uid, nil
}

func (n *node) Detach(_ context.Context, uid string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.attached, uid)
	return nil
}

func (n *node) Mount(_ context.Context, p *corev1.Pod, _ interface {
	ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
}) (map[string][]container.Mount, error) {
	<-time.After(n.sandbox)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mounted[string(p.UID)] = true
	return nil, nil
}

func (n *node) Update(context.Context, *corev1.Pod, pod.Source) {}

func (n *node) Part(context.Context, string, string, int, container.Mount, string) (string, error) {
	return "/part", nil
}

func (n *node) Unmount(_ context.Context, uid string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.mounted, uid)
	return nil
}

func (n *node) ConfigMap(_ context.Context, _, name string) (*corev1.ConfigMap, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if c := n.configMap[name]; c != nil {
		return c, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
}

func (n *node) Secret(_ context.Context, _, name string) (*corev1.Secret, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
}

func (n *node) Status(p *corev1.Pod, st corev1.PodStatus) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.status[string(p.UID)] = st
	for _, c := range st.ContainerStatuses {
		if c.State.Waiting == nil {
			continue
		}
		if last := len(n.reasons) - 1; last < 0 || n.reasons[last] != c.State.Waiting.Reason {
			n.reasons = append(n.reasons, c.State.Waiting.Reason)
		}
	}
}

func (n *node) Event(_ *corev1.Pod, _, _, reason, message string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = append(n.events, reason+": "+message)
}

func (n *node) Gone(uid string, p *corev1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.gone[uid] = true
	n.forgotten[uid] = p == nil
}

func (n *node) last(uid string) corev1.PodStatus {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.status[uid]
}

func (n *node) has(event string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Contains(n.events, event)
}

func (n *node) isGone(uid string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.gone[uid]
}
