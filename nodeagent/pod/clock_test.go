package pod_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/pod"
)

// stepped is an engine whose clock is set between each container's start and end.
type stepped struct {
	*engine
	by time.Duration
}

func (s *stepped) Get(ctx context.Context, uid string) (container.Pod, error) {
	p, err := s.engine.Get(ctx, uid)
	for i := range p.Containers {
		if c := &p.Containers[i]; !c.FinishedAt.IsZero() {
			c.FinishedAt = c.FinishedAt.Add(s.by)
		}
	}
	return p, err
}

// The waits between restarts are the same, whatever the wall clock does between
// a container's start and its end.
func TestBackOffByTheMonotonicClock(t *testing.T) {
	for name, by := range map[string]time.Duration{
		"right": 0, "set to 2099": 75 * 365 * 24 * time.Hour, "set to 1970": -55 * 365 * 24 * time.Hour, "an hour back": -time.Hour, "an hour on": time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, n := newEngine(), newNode()
				w, stop := agentOn(t, e, &stepped{e, by}, n, nil)
				defer stop()
				w.Set(wanted())
				synctest.Wait()
				var waits []time.Duration
				for _, runs := range []time.Duration{time.Second, time.Second, time.Minute, time.Second, time.Second, time.Second, time.Second, time.Hour, time.Second} {
					time.Sleep(runs)
					synctest.Wait()
					ended, before := time.Now(), len(e.starts["main"])
					e.exit(uid, "main", 1)
					time.Sleep(5*time.Minute + time.Second)
					synctest.Wait()
					if len(e.starts["main"]) != before+1 {
						t.Fatalf("started %d times", len(e.starts["main"])-before)
					}
					waits = append(waits, e.starts["main"][before].Sub(ended))
				}
				want := []time.Duration{0, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 300 * time.Second, 0, 10 * time.Second}
				if diff := cmp.Diff(want, waits); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// After a reboot what a pod has spent of its deadline is counted by the server's
// clock where it is known, and never from before the pod was made.
func TestDeadlineAfterARebootWithAWrongClock(t *testing.T) {
	made := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	soon, late, past, future := made.Add(time.Minute), made.Add(2*time.Hour), time.Unix(100, 0), made.AddDate(73, 0, 0)
	for name, c := range map[string]struct {
		node, server, began time.Time
		failed              bool
	}{
		"clocks are right":         {node: soon, server: soon, began: made},
		"the time is over":         {node: late, server: late, began: made, failed: true},
		"the node is in 2099":      {node: future, server: soon, began: made},
		"the node is in 1970":      {node: past, server: soon, began: made},
		"1970, time is over":       {node: past, server: late, began: made, failed: true},
		"1970, no server":          {node: past, began: made},
		"it began in 1970":         {node: soon, server: soon, began: past},
		"began in 1970, no server": {node: soon, began: past},
		"it began in 2099":         {node: soon, server: soon, began: future},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, n := newEngine(), newNode()
				begun := time.Now()
				w, stop := agentOn(t, e, e, n, func(cfg *pod.Config) {
					cfg.Now = func() time.Time { return c.node.Add(time.Since(begun)) }
					cfg.ServerTime = func() (time.Time, bool) { return c.server.Add(time.Since(begun)), !c.server.IsZero() }
				})
				defer stop()
				limit := int64(3600)
				w.Set(wanted(func(p *corev1.Pod) {
					p.CreationTimestamp = metav1.NewTime(made)
					p.Status.StartTime = &metav1.Time{Time: c.began}
					p.Spec.ActiveDeadlineSeconds = &limit
				}))
				synctest.Wait()
				if failed := n.last(uid).Phase == corev1.PodFailed; failed != c.failed {
					t.Errorf("phase %s", n.last(uid).Phase)
				}
				time.Sleep(time.Hour + time.Second)
				synctest.Wait()
				if n.last(uid).Reason != pod.ReasonDeadlineExceeded {
					t.Errorf("an hour later: %+v", n.last(uid))
				}
			})
		})
	}
}
