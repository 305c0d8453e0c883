package probe_test

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/container"
)

func command(initial, period, success, failure int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:        corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"check"}}},
		InitialDelaySeconds: initial, PeriodSeconds: period, TimeoutSeconds: 1, SuccessThreshold: success, FailureThreshold: failure,
	}
}

// TestThresholdsCountOutcomesInARow counts successes and failures in a row, from the initial delay on.
func TestThresholdsCountOutcomesInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{}
		p, stop := n.probers(t)
		defer stop()
		c := probed(&corev1.Container{Name: "main", ReadinessProbe: command(5, 10, 2, 3), LivenessProbe: command(0, 10, 1, 3)})
		began := time.Now()
		is := func(at time.Duration, want container.Health) {
			t.Helper()
			time.Sleep(time.Until(began.Add(at)))
			synctest.Wait()
			if got := p.Watch("u", &corev1.Pod{}, []container.Probed{c})["c1"]; got != want {
				t.Errorf("after %v: %+v, want %+v", at, got, want)
			}
		}
		is(0, container.Health{Started: true})
		is(6*time.Second, container.Health{Started: true})
		is(16*time.Second, container.Health{Started: true, Ready: true}) // the second success
		n.set(func() { n.code = 1 })
		is(26*time.Second, container.Health{Started: true, Ready: true})                             // liveness 1, readiness 1
		is(36*time.Second, container.Health{Started: true, Ready: true})                             // 2, 2
		is(41*time.Second, container.Health{Started: true, Ready: true, Failed: container.Liveness}) // 3
		is(46*time.Second, container.Health{Started: true, Failed: container.Liveness})
		execs := n.count()
		c.ID, c.PID = "c2", 8 // it was restarted
		time.Sleep(time.Second)
		if got := p.Watch("u", &corev1.Pod{}, []container.Probed{c})["c2"]; got != (container.Health{Started: true}) {
			t.Errorf("the new container: %+v", got)
		}
		p.Watch("u", nil, nil)
		time.Sleep(time.Hour)
		if n.count() > execs+1 {
			t.Errorf("%d probes of a container that is gone", n.count()-execs)
		}
	})
}

// TestStartupProbeHoldsBackTheOthers holds back the other probes until the container has started.
func TestStartupProbeHoldsBackTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{code: 1}
		p, stop := n.probers(t)
		defer stop()
		c := probed(&corev1.Container{Name: "main", StartupProbe: command(0, 1, 1, 30), ReadinessProbe: command(0, 100, 1, 1), LivenessProbe: command(0, 100, 1, 1)})
		health := func() container.Health { return p.Watch("u", &corev1.Pod{}, []container.Probed{c})["c1"] }
		health()
		time.Sleep(10*time.Second + time.Millisecond)
		if got := health(); got != (container.Health{}) || n.count() != 11 {
			t.Errorf("before the start: %+v after %d probes", got, n.count())
		}
		n.set(func() { n.code = 0 })
		time.Sleep(time.Second)
		synctest.Wait()
		if got := health(); got != (container.Health{Started: true, Ready: true}) {
			t.Errorf("after the start: %+v", got)
		}
		time.Sleep(10 * time.Second)
		if n.count() != 14 {
			t.Errorf("%d probes, want 14: the startup probe has done its work", n.count())
		}
		c.Before, c.ID = container.Health{Started: true, Ready: true}, "c2"
		if got := p.Watch("u", &corev1.Pod{}, []container.Probed{c})["c2"]; got != c.Before {
			t.Errorf("what was known before the agent: %+v", got)
		}
	})
}

// TestFirstProbesAreSpread: after a start of the agent the probes of containers that run
// already are spread over the period.
func TestFirstProbesAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{age: time.Hour}
		p, stop := n.probers(t)
		defer stop()
		synctest.Wait()
		for i := range 100 {
			c := probed(&corev1.Container{Name: "main", ReadinessProbe: command(0, 10, 1, 1)})
			p.Watch(string(rune('a'+i)), &corev1.Pod{}, []container.Probed{c})
		}
		time.Sleep(time.Second)
		if n.count() > 40 {
			t.Errorf("%d of 100 probes in the first of ten seconds", n.count())
		}
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if n.count() < 100 {
			t.Errorf("%d of 100 probes in ten seconds", n.count())
		}
	})
}

// TestInitialDelayWhateverTheClockSays: Podman's time of the start is by the wall
// clock, which may be set after it.
func TestInitialDelayWhateverTheClockSays(t *testing.T) {
	for _, started := range []time.Time{time.Unix(100, 0), time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)} {
		synctest.Test(t, func(t *testing.T) {
			n := &node{age: 10 * time.Second}
			p, stop := n.probers(t)
			defer stop()
			synctest.Wait()
			c := probed(&corev1.Container{Name: "main", LivenessProbe: command(60, 10, 1, 1)})
			c.StartedAt = started
			p.Watch("u", &corev1.Pod{}, []container.Probed{c})
			time.Sleep(49 * time.Second)
			synctest.Wait()
			if n.count() != 0 {
				t.Errorf("started in %d: probed before its initial delay", started.Year())
			}
			time.Sleep(12 * time.Second)
			synctest.Wait()
			if n.count() == 0 {
				t.Errorf("started in %d: not probed after its initial delay", started.Year())
			}
		})
	}
}
