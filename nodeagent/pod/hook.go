package pod

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/container"
)

// A hook that is done is noted in the pod's directory, as a file named after
// the container, so that an agent that is killed does not run it again: one that
// was under way then is run again, as Kubernetes allows. A reboot forgets both
// the notes and what the hooks did.
const (
	postStartDone = "postStart-"
	preStopDone   = "preStop-"
)

func postStart(spec *corev1.Container) *corev1.LifecycleHandler {
	if spec.Lifecycle == nil {
		return nil
	}
	return spec.Lifecycle.PostStart
}

func preStop(spec *corev1.Container) *corev1.LifecycleHandler {
	if spec.Lifecycle == nil {
		return nil
	}
	return spec.Lifecycle.PreStop
}

// postStart runs a container's hook. A container whose hook fails is condemned.
func (w *worker) postStart(ctx context.Context, d Desired, step Step) error {
	id := step.ID
	if id == "" {
		id = w.made[step.Container]
	}
	engine, err := w.set.cfg.Pods.Get(ctx, w.uid)
	if err != nil {
		return err
	}
	spec := specOf(d.Pod, step.Container)
	target, running := targetOf(engine, id, d, spec)
	if !running {
		return nil
	}
	err = w.set.cfg.Probes.Hook(ctx, target, postStart(spec))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		w.event(d, step.Container, corev1.EventTypeWarning, "FailedPostStartHook", "PostStartHook failed: "+err.Error())
		w.memory.condemn(id, "FailedPostStartHook")
		return nil
	}
	w.mark(postStartDone, id)
	if w.memory.Hooked == nil {
		w.memory.Hooked = map[string]bool{}
	}
	w.memory.Hooked[id] = true
	return nil
}

func (o *Observed) condemn(id, why string) {
	if o.Condemned == nil {
		o.Condemned = map[string]string{}
	}
	o.Condemned[id] = why
}

// stopContainer runs a container's hook and ends the container, both within the
// step's grace.
func (w *worker) stopContainer(ctx context.Context, d Desired, step Step) error {
	grace := step.GraceSeconds
	m, found := memberOf(d.Pod, step.Container)
	if found && preStop(m.spec) != nil && !w.marked(preStopDone, step.ID) {
		began := w.set.cfg.Now()
		if err := w.preStop(ctx, d, step, m.spec); err != nil {
			return err
		}
		grace = max(minStopSeconds, grace-int64(w.set.cfg.Now().Sub(began).Seconds()))
	}
	return w.set.cfg.Containers.StopContainer(ctx, step.ID, grace)
}

// preStop runs the hook. Its failure is told and changes nothing.
func (w *worker) preStop(ctx context.Context, d Desired, step Step, spec *corev1.Container) error {
	target, running := targetOf(w.memory.Engine, step.ID, d, spec)
	if !running {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, time.Duration(step.GraceSeconds)*time.Second)
	defer cancel()
	err := w.set.cfg.Probes.Hook(within, target, preStop(spec))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		w.event(d, step.Container, corev1.EventTypeWarning, "FailedPreStopHook", "PreStopHook failed: "+err.Error())
	}
	w.mark(preStopDone, step.ID)
	return nil
}

func targetOf(engine container.Pod, id string, d Desired, spec *corev1.Container) (container.Target, bool) {
	for _, c := range engine.Containers {
		if c.ID == id && c.Phase == container.Running {
			return container.Target{ID: id, PID: c.PID, Address: d.Address, Spec: spec}, true
		}
	}
	return container.Target{}, false
}

func (w *worker) markPath(what, id string) string {
	return filepath.Join(w.dir(), "hooks", what+filepath.Base(id))
}

func (w *worker) mark(what, id string) {
	err := os.MkdirAll(filepath.Join(w.dir(), "hooks"), 0o700)
	if err == nil {
		err = os.WriteFile(w.markPath(what, id), nil, 0o600)
	}
	if err != nil {
		w.set.cfg.Log.Error("cannot note that a hook is done", "pod", w.uid, "err", err)
	}
}

func (w *worker) marked(what, id string) bool {
	_, err := os.Stat(w.markPath(what, id))
	return err == nil
}

// marks are the containers whose postStart hook is done.
func (w *worker) marks() map[string]bool {
	done := map[string]bool{}
	entries, _ := os.ReadDir(filepath.Join(w.dir(), "hooks")) // none: none is done
	for _, e := range entries {
		if id, ok := strings.CutPrefix(e.Name(), postStartDone); ok {
			done[id] = true
		}
	}
	return done
}
