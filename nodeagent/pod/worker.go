package pod

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/container"
)

// Waits of a worker that can go on only by trying again.
const (
	unavailableDelay = time.Second // the engine does not answer
	repeatDelay      = time.Second // a step succeeded and changed nothing
)

// worker brings one pod to what is desired. Its goroutine lives while there is
// work; between that, a timer may stand.
type worker struct {
	set *Workers
	uid string

	mu        sync.Mutex // protects what follows, up to the blank line
	desired   Desired
	dirty     bool // look again
	active    bool // a goroutine runs
	stale     bool // make sure of network and volumes again
	outdated  bool // the volumes may be behind what they follow
	timer     *time.Timer
	interrupt context.CancelFunc // of the step under way, if it may be broken off

	// What follows belongs to the goroutine.
	memory Observed
	netns  string
	mounts map[string][]container.Mount
	images map[string]container.Image // by container name
	made   map[string]string          // the engine's id by container name, of this turn
	told   map[string][]string        // what was told of its devices, by the engine's id
}

func (w *worker) want(d Desired) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.interrupt != nil && overtakes(w.desired, d) {
		w.interrupt()
	}
	if w.desired.Pod != nil && d.Pod != nil && (!maps.Equal(w.desired.Pod.Labels, d.Pod.Labels) || !maps.Equal(w.desired.Pod.Annotations, d.Pod.Annotations)) {
		w.outdated = true // downwardAPI volumes show them
	}
	w.desired = d
}

// overtakes reports whether what is desired now makes a pull or a stop under
// way pointless: the pod leaves, or leaves sooner, or is over, or is made of
// something else. A label is no reason to begin a pull anew.
func overtakes(before, now Desired) bool {
	if before.leaving() != now.leaving() || (before.Pod == nil) != (now.Pod == nil) {
		return true
	}
	if now.Pod == nil {
		return false
	}
	return graceSeconds(before.Pod) != graceSeconds(now.Pod) ||
		terminal(before.Pod.Status.Phase) != terminal(now.Pod.Status.Phase) ||
		!slices.EqualFunc(members(before.Pod), members(now.Pod), func(a, b member) bool { return Hash(a.spec) == Hash(b.spec) })
}

func (w *worker) refresh() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stale = true
}

// take marks the worker dirty and reports whether it needs a goroutine.
func (w *worker) take() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dirty = true
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	start := !w.active
	w.active = true
	return start
}

func (w *worker) stopTimer() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
}

// run takes turns until nothing is left to do, or ctx ends.
func (w *worker) run(ctx context.Context) {
	for {
		w.mu.Lock()
		if !w.dirty || ctx.Err() != nil {
			w.active = false
			w.mu.Unlock()
			return
		}
		w.dirty = false
		if w.stale {
			w.stale, w.memory.Attached, w.memory.Mounted = false, false, false
		}
		w.mu.Unlock()
		w.turn(ctx)
	}
}

// turn observes, plans and does until the plan is empty, and sets the timer.
func (w *worker) turn(ctx context.Context) {
	var last []Step
	for ctx.Err() == nil {
		d := w.wanted()
		if err := w.observe(ctx, d); err != nil {
			w.set.cfg.Log.Debug("cannot look up a pod in the engine", "pod", w.uid, "err", err)
			w.wakeIn(unavailableDelay)
			return
		}
		w.follow(ctx)
		w.report(d)
		steps := Plan(d, w.memory)
		if len(steps) == 0 {
			w.rest(d)
			return
		}
		if slices.Equal(steps, last) {
			w.wakeIn(repeatDelay)
			return
		}
		last = steps
		err := w.doAll(ctx, d, steps)
		if errors.Is(err, container.ErrUnavailable) {
			w.wakeIn(unavailableDelay)
			return
		}
	}
}

func (w *worker) wanted() Desired {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.desired
}

// rest ends a turn: with a timer, or for good.
func (w *worker) rest(d Desired) {
	if d.Pod == nil && w.memory.Gone {
		// Where it went while it was wanted, the server may have removed it before
		// it was told, and its record is still there.
		w.set.cfg.Reporter.Gone(w.uid, nil)
		w.set.drop(w)
		return
	}
	if wake := Wake(d, w.memory); !wake.IsZero() {
		w.wakeIn(wake.Sub(w.memory.Now))
	}
}

func (w *worker) wakeIn(delay time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
	w.timer = time.AfterFunc(delay, func() { w.set.Nudge(w.uid) })
}

// observe reads what the engine has and brings the memory up to it.
func (w *worker) observe(ctx context.Context, d Desired) error {
	m := &w.memory
	m.Now = w.set.cfg.Now()
	if m.Gone {
		return nil
	}
	engine, err := w.set.cfg.Pods.Get(ctx, w.uid)
	if err != nil {
		return err
	}
	m.Engine = engine
	if d.leaving() && m.LeavingSince.IsZero() {
		m.LeavingSince = m.Now
		m.Retries = nil
	}
	if d.Pod == nil {
		w.set.cfg.Probes.Watch(w.uid, nil, nil)
		return nil
	}
	if m.StartTime.IsZero() {
		w.begin(d)
	}
	m.Deadline = time.Time{}
	if limit := d.Pod.Spec.ActiveDeadlineSeconds; limit != nil {
		m.Deadline = m.ActiveSince.Add(time.Duration(*limit) * time.Second)
	}
	m.see()
	w.lookAtDevices(d)
	m.Health = w.set.cfg.Probes.Watch(w.uid, d.Pod, probed(d, *m))
	before := m.Retries
	m.Retries = make(map[string]Retry, len(before))
	for name, r := range before {
		m.Retries[name] = r
	}
	m.Note(d)
	for name, r := range m.Retries {
		if r.For != before[name].For && r.Delay > 0 {
			w.event(d, name, corev1.EventTypeWarning, "BackOff", backOffMessage(d.Pod, name))
		}
	}
	return nil
}

// see notes the counts of restarts, and forgets what is gone from the engine.
func (o *Observed) see() {
	if o.Seen == nil {
		o.Seen = map[string]int{}
	}
	there := map[string]bool{}
	for _, c := range o.Engine.Containers {
		there[c.ID] = true
		o.Seen[c.Name] = max(o.Seen[c.Name], c.Restarts)
	}
	maps.DeleteFunc(o.Hooked, func(id string, _ bool) bool { return !there[id] })
	maps.DeleteFunc(o.Condemned, func(id, _ string) bool { return !there[id] })
}

// probed are the containers whose probes are to run: those that run, of a pod
// that is to stay, when their hook is done.
func probed(d Desired, o Observed) []container.Probed {
	if d.leaving() || finished(d, o) {
		return nil
	}
	var all []container.Probed
	for _, m := range members(d.Pod) {
		spec := m.spec
		c, _ := o.latest(spec.Name)
		if c.Phase != container.Running || !o.hooked(spec, c) || spec.StartupProbe == nil && spec.LivenessProbe == nil && spec.ReadinessProbe == nil {
			continue
		}
		all = append(all, container.Probed{
			Target:    container.Target{ID: c.ID, PID: c.PID, Address: d.Address, Spec: spec},
			StartedAt: c.StartedAt, Before: healthBefore(d.Pod, c),
		})
	}
	return all
}

// healthBefore is what the server has of the health of this very run of a
// container: what an earlier agent found out.
func healthBefore(pod *corev1.Pod, c container.State) container.Health {
	st := statusOf(pod, c.Name)
	if st == nil || st.ContainerID != containerID(c) || st.State.Running == nil || st.State.Running.StartedAt.Unix() != c.StartedAt.Unix() {
		return container.Health{}
	}
	return container.Health{Started: st.Started != nil && *st.Started, Ready: st.Ready}
}

func (w *worker) report(d Desired) {
	if d.Pod == nil || w.memory.Gone {
		return
	}
	st := Status(d, w.memory, w.set.cfg.HostIP())
	w.memory.Conditions = st.Conditions
	w.set.cfg.Reporter.Status(d.Pod, st)
}

func (w *worker) event(d Desired, container, eventType, reason, message string) {
	if d.Pod != nil {
		w.set.cfg.Reporter.Event(d.Pod, container, eventType, reason, message)
	}
}
