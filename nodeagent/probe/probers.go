package probe

import (
	"context"
	"net"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/container"
)

// Config is what Probers work with; all fields are required.
type Config struct {
	// Dial connects to a pod, or to the host that a probe names. An error that
	// wraps ErrNoAnswer says nothing about the pod.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Exec runs a command in a container and returns at most limit bytes of its
	// output; when ctx ends it kills the command and returns ctx's error.
	Exec func(ctx context.Context, t container.Target, command []string, limit int) (output []byte, code int, err error)
	// Event is told what a person should know of a probe. It must not block.
	Event func(pod *corev1.Pod, container, eventType, reason, message string)
	// Age is how long a process has run; nil: as the kernel says, by a clock that
	// nobody sets.
	Age func(pid int) time.Duration
	// Changed is told that Watch has news of a pod. It must not block.
	Changed func(uid string)
}

// Probers runs the probes of the node's containers. It is safe for concurrent use.
type Probers struct {
	cfg Config

	mu    sync.Mutex      // protects what follows
	ctx   context.Context // Run's; nil before it and after its end
	begun time.Time
	pods  map[string]map[string]*watched // by pod uid and container id
	group sync.WaitGroup
}

// watched is a container whose probes run. Its health is protected by the
// Probers' mutex; the rest does not change.
type watched struct {
	pod     *corev1.Pod
	probed  container.Probed
	health  container.Health
	started chan struct{} // closed when health.Started
	cancel  context.CancelFunc
}

// New returns Probers; nothing is probed before Run.
func New(cfg Config) *Probers {
	if cfg.Age == nil {
		cfg.Age = age
	}
	return &Probers{cfg: cfg, pods: map[string]map[string]*watched{}}
}

// Run probes until ctx ends, waits for the probes to end, and returns ctx's error.
// It is called once.
func (p *Probers) Run(ctx context.Context) error {
	p.mu.Lock()
	p.ctx, p.begun = ctx, time.Now()
	for _, containers := range p.pods {
		for _, w := range containers {
			p.start(w)
		}
	}
	p.mu.Unlock()
	<-ctx.Done()
	p.mu.Lock()
	p.ctx = nil // no probe starts from here on
	p.mu.Unlock()
	p.group.Wait()
	return ctx.Err()
}

// Watch makes sure that the probes of these containers of a pod run, and no
// others of it, and returns what they say by now, by container id. It does not
// block.
func (p *Probers) Watch(uid string, pod *corev1.Pod, running []container.Probed) map[string]container.Health {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := make(map[string]*watched, len(running))
	health := make(map[string]container.Health, len(running))
	for _, c := range running {
		w := p.pods[uid][c.ID]
		if w == nil || w.probed.PID != c.PID { // a container that was started again keeps its id
			w = p.watch(pod, c)
		}
		now[c.ID], health[c.ID] = w, w.health
	}
	for id, w := range p.pods[uid] {
		if now[id] != w && w.cancel != nil {
			w.cancel()
		}
	}
	if p.pods[uid] = now; len(now) == 0 {
		delete(p.pods, uid)
	}
	return health
}

// watch begins with a container; the caller holds p.mu.
func (p *Probers) watch(pod *corev1.Pod, c container.Probed) *watched {
	w := &watched{pod: pod, probed: c, started: make(chan struct{})}
	w.health.Started = c.Spec.StartupProbe == nil || c.Before.Started
	w.health.Ready = c.Spec.ReadinessProbe == nil || c.Before.Ready
	if w.health.Started {
		close(w.started)
	}
	p.start(w)
	return w
}

// start makes the goroutines of a container's probes, which end with p.ctx or
// by w.cancel; the caller holds p.mu.
func (p *Probers) start(w *watched) {
	if p.ctx == nil || p.ctx.Err() != nil || w.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(p.ctx)
	w.cancel = cancel
	running, age := time.Since(p.begun), p.cfg.Age(w.probed.PID)
	for kind, probe := range map[container.ProbeKind]*corev1.Probe{
		container.Startup: w.probed.Spec.StartupProbe, container.Liveness: w.probed.Spec.LivenessProbe, container.Readiness: w.probed.Spec.ReadinessProbe,
	} {
		if probe == nil || kind == container.Startup && w.health.Started {
			continue
		}
		one := &prober{set: p, watched: w, kind: kind, probe: probe, delay: firstDelay(probe, age, running)}
		p.group.Go(func() { one.run(ctx) })
	}
}

// set changes a container's health, and tells whoever watches.
func (p *Probers) set(w *watched, change func(h *container.Health)) {
	p.mu.Lock()
	before := w.health
	change(&w.health)
	changed := w.health != before
	if w.health.Started && !before.Started {
		close(w.started)
	}
	p.mu.Unlock()
	if changed {
		p.cfg.Changed(string(w.pod.UID))
	}
}
