package pod_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/pod"
)

func hooks(p *corev1.Pod) {
	command := func(name string) *corev1.LifecycleHandler {
		return &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{name}}}
	}
	p.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PostStart: command("post"), PreStop: command("pre")}
}

// slow makes hooks take d, or end with their context.
func (n *node) slow(d time.Duration) {
	n.prober.mu.Lock()
	defer n.prober.mu.Unlock()
	n.hook = func(ctx context.Context, _ string) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d):
			return nil
		}
	}
}

func TestHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, n := newEngine(), newNode()
		n.slow(10 * time.Second)
		w, stop := agent(t, e, n)
		defer func() { stop() }()
		w.Set(wanted(hooks))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		stop() // killed while the hook runs: it is run again
		w, stop = agent(t, e, n)
		w.Set(wanted(hooks))
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if st := n.last(uid); st.Phase != corev1.PodPending || st.ContainerStatuses[0].Ready {
			t.Errorf("before its hook is done: %+v", st)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if st := n.last(uid); condition(st, corev1.PodReady) != "True" {
			t.Errorf("when its hook is done: %+v", st)
		}
		stop()
		w, stop = agent(t, e, n)
		w.Set(wanted(hooks))
		synctest.Wait()
		if want := []string{"main post", "main post"}; !slices.Equal(n.hooks, want) {
			t.Errorf("hooks %q, want %q", n.hooks, want)
		}
		w.Set(wanted(hooks, deleted(30)))
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if n.isGone(uid) {
			t.Error("it is gone before its hook is done")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if !n.isGone(uid) || len(n.hooks) != 3 || n.hooks[2] != "main pre" {
			t.Errorf("gone %v after hooks %q", n.isGone(uid), n.hooks)
		}
	})
}

func TestPreStopWithinTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, n := newEngine(), newNode()
		w, stop := agent(t, e, n)
		defer stop()
		w.Set(wanted(hooks))
		synctest.Wait()
		n.slow(time.Hour)
		e.ignoresTerm = true
		began := time.Now()
		w.Set(wanted(hooks, deleted(10)))
		for synctest.Wait(); !n.isGone(uid); synctest.Wait() {
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took > 13*time.Second {
			t.Errorf("it took %v, want the grace and the least time to end", took)
		}
		if !n.has("FailedPreStopHook: PreStopHook failed: context deadline exceeded") {
			t.Errorf("events: %q", n.events)
		}
	})
}

func TestFailedPostStartEndsTheContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, n := newEngine(), newNode()
		n.hook = func(_ context.Context, _ string) error { return errors.New("no") }
		w, stop := agent(t, e, n)
		defer stop()
		w.Set(wanted(hooks))
		time.Sleep(time.Second)
		synctest.Wait()
		if got := strings.Join(e.order, " "); got != "+main -main +main -main" || n.last(uid).ContainerStatuses[0].State.Waiting.Reason != pod.ReasonCrashLoopBackOff {
			t.Errorf("order %s, status %+v", got, n.last(uid).ContainerStatuses)
		}
		if !n.has("FailedPostStartHook: PostStartHook failed: no") || !n.has("Killing: Container main: FailedPostStartHook") {
			t.Errorf("events: %q", n.events)
		}
	})
}

func TestFailedProbeEndsTheContainer(t *testing.T) {
	for _, c := range []struct {
		kind   container.ProbeKind
		policy corev1.RestartPolicy
		event  string
		phase  corev1.PodPhase
		takes  time.Duration
	}{
		{container.Liveness, corev1.RestartPolicyAlways, "Killing: Container main failed liveness probe, will be restarted", corev1.PodRunning, 7 * time.Second},
		{container.Startup, corev1.RestartPolicyNever, "Killing: Container main failed startup probe", corev1.PodFailed, 3 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			e, n := newEngine(), newNode()
			e.ignoresTerm = true
			w, stop := agent(t, e, n)
			defer stop()
			grace, own := int64(7), int64(3)
			w.Set(wanted(restart(c.policy), func(p *corev1.Pod) {
				p.Spec.TerminationGracePeriodSeconds = &grace
				p.Spec.Containers[0].LivenessProbe = &corev1.Probe{}
				p.Spec.Containers[0].StartupProbe = &corev1.Probe{TerminationGracePeriodSeconds: &own}
			}))
			synctest.Wait()
			n.say("main", container.Health{Started: true, Failed: c.kind})
			w.Nudge(uid)
			time.Sleep(c.takes - time.Second)
			synctest.Wait()
			if e.containers(uid)[0].Phase != container.Running {
				t.Errorf("%s: killed before its grace of %v", c.kind, c.takes)
			}
			n.say("main", container.Health{Started: true, Ready: true})
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if e.containers(uid)[0].Phase != container.Exited {
				t.Errorf("%s: not killed after its grace of %v", c.kind, c.takes)
			}
			if !n.has(c.event) || n.last(uid).Phase != c.phase {
				t.Errorf("%s: phase %s, events %q", c.kind, n.last(uid).Phase, n.events)
			}
		})
	}
}

// TestReadinessGates: conditions that others set hold the pod back.
func TestReadinessGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, n := newEngine(), newNode()
		w, stop := agent(t, e, n)
		defer stop()
		gate := func(status corev1.ConditionStatus) func(*corev1.Pod) {
			return func(p *corev1.Pod) {
				p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.org/ok"}}
				if status != "" {
					p.Status.Conditions = []corev1.PodCondition{{Type: "example.org/ok", Status: status}}
				}
			}
		}
		for status, want := range map[corev1.ConditionStatus]string{
			"":                    `False ReadinessGatesNotReady corresponding condition of pod readiness gate "example.org/ok" does not exist.`,
			corev1.ConditionFalse: `False ReadinessGatesNotReady the status of pod readiness gate "example.org/ok" is not "True", but False`,
			corev1.ConditionTrue:  "True",
		} {
			w.Set(wanted(gate(status)))
			synctest.Wait()
			if got := condition(n.last(uid), corev1.PodReady); got != want || condition(n.last(uid), corev1.ContainersReady) != "True" {
				t.Errorf("%q: %s, want %s", status, got, want)
			}
		}
	})
}

// TestHealthIsKnownBefore: what an earlier agent found out of this very run of a
// container stands until the probe has spoken.
func TestHealthIsKnownBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, n := newEngine(), newNode()
		w, stop := agent(t, e, n)
		probed := func(p *corev1.Pod) { p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{} }
		w.Set(wanted(probed))
		synctest.Wait()
		st := n.last(uid)
		stop()
		w, stop = agent(t, e, n)
		defer stop()
		w.Set(wanted(probed, func(p *corev1.Pod) { p.Status = st }))
		synctest.Wait()
		if got := n.asked["main"]; !got.Ready || !got.Started {
			t.Errorf("the probes were told %+v", got)
		}
	})
}

// TestRemovedByHand: a container that somebody removes was restarted, also when
// the agent was away.
func TestRemovedByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, n := newEngine(), newNode()
		w, stop := agent(t, e, n)
		defer func() { stop() }()
		w.Set(wanted())
		synctest.Wait()
		remove := func() {
			e.mu.Lock()
			e.pods[uid].Containers = nil
			e.mu.Unlock()
		}
		remove()
		w.Nudge(uid)
		synctest.Wait()
		if st := n.last(uid).ContainerStatuses[0]; st.RestartCount != 1 || st.State.Running == nil {
			t.Errorf("status: %+v", st)
		}
		st := n.last(uid)
		stop()
		remove()
		w, stop = agent(t, e, n)
		w.Set(wanted(func(p *corev1.Pod) { p.Status = st }))
		synctest.Wait()
		if st := n.last(uid).ContainerStatuses[0]; st.RestartCount != 2 {
			t.Errorf("status after the agent's restart: %+v", st)
		}
	})
}

// TestDeadlineOverRestarts: a restart of the agent, with a clock that was set
// meanwhile, neither hurries nor stalls a deadline.
func TestDeadlineOverRestarts(t *testing.T) {
	for _, step := range []time.Duration{-40 * 365 * 24 * time.Hour, 0, 40 * 365 * 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			e, n := newEngine(), newNode()
			deadline := func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(60)) }
			w, stop := agent(t, e, n)
			w.Set(wanted(deadline))
			time.Sleep(30 * time.Second)
			synctest.Wait()
			began := n.last(uid).StartTime.Add(-step) // as the stepped clock has it
			stop()
			w, stop = agent(t, e, n)
			defer stop()
			w.Set(wanted(deadline, func(p *corev1.Pod) { p.Status.StartTime = &metav1.Time{Time: began} }))
			time.Sleep(29 * time.Second)
			synctest.Wait()
			if n.last(uid).Phase != corev1.PodRunning {
				t.Errorf("step %v: before the deadline: %+v", step, n.last(uid))
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if st := n.last(uid); st.Phase != corev1.PodFailed || st.Reason != pod.ReasonDeadlineExceeded {
				t.Errorf("step %v: after the deadline: %+v", step, st)
			}
		})
	}
}
