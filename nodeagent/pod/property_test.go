package pod_test

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/pod"
)

// TestWhateverHappens ends containers, kills the agent, cuts the power and takes
// the engine and the network away, lets probes fail and hooks take their time,
// in any order. At no time do two incarnations of a container run, or more than
// two exist; no container begins before the init containers of this boot have
// succeeded, and none of those runs again after that; and in the end each
// container of a wanted pod runs, and of an unwanted one nothing is left.
func TestWhateverHappens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		happenings := rapid.SliceOfN(rapid.IntRange(0, 11), 1, 40).Draw(rt, "happenings")
		deletes := rapid.Bool().Draw(rt, "deleted at the end")
		synctest.Test(t, func(t *testing.T) {
			e, n := newEngine(), newNode()
			two := func(edits ...func(*corev1.Pod)) pod.Desired {
				d := wanted(append([]func(*corev1.Pod){staged, hooks}, edits...)...)
				d.Pod.Spec.Containers = append(d.Pod.Spec.Containers, corev1.Container{Name: "side", Image: "busybox"})
				return d
			}
			w, stop := agent(t, e, n)
			restart := func() {
				w, stop = agent(t, e, n)
				w.Set(two())
			}
			w.Set(two())
			for _, what := range happenings {
				switch what {
				case 0:
					e.exit(uid, "main", 1)
				case 1:
					e.exit(uid, "side", 0)
				case 2:
					stop()
					restart()
				case 3:
					stop()
					e.powerCut()
					restart()
				case 4, 5:
					e.mu.Lock()
					e.down = what == 4
					e.mu.Unlock()
				case 6:
					n.mu.Lock()
					n.broken = !n.broken
					n.mu.Unlock()
					w.Refresh()
				case 7:
					time.Sleep(7 * time.Second)
				case 8:
					e.exit(uid, "a", 0)
					synctest.Wait()
					e.exit(uid, "c", 0)
				case 9:
					e.exit(uid, "b", 1)
				case 10:
					n.say("b", container.Health{Started: true, Failed: container.Liveness})
					w.Nudge(uid)
					synctest.Wait()
					n.say("b", container.Health{Started: true, Ready: true})
				case 11:
					n.slow(3 * time.Second)
				}
				synctest.Wait()
				check(t, e)
			}
			e.mu.Lock()
			e.down = false
			e.mu.Unlock()
			n.mu.Lock()
			n.broken = false
			n.mu.Unlock()
			if deletes {
				w.Set(two(deleted(5)))
			}
			for range 3 { // what the init containers wait for
				time.Sleep(6 * time.Minute)
				synctest.Wait()
				e.exit(uid, "a", 0)
				synctest.Wait()
				e.exit(uid, "c", 0)
			}
			time.Sleep(6 * time.Minute)
			synctest.Wait()
			check(t, e)
			if deletes && (len(e.pods) != 0 || len(n.attached) != 0 || len(n.mounted) != 0 || !n.isGone(uid)) {
				t.Errorf("after %v: left %v", happenings, e.pods)
			}
			if got := running(e); !deletes && got != 3 {
				t.Errorf("after %v: %d containers run: %+v", happenings, got, e.containers(uid))
			}
			stop()
		})
	})
}

func check(t *testing.T, e *engine) {
	t.Helper()
	count := map[string]int{}
	for _, c := range e.containers(uid) {
		count[c.Name]++
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for name, n := range count {
		if n > 2 {
			t.Fatalf("%d containers %s", n, name)
		}
	}
	if e.doubles > 0 || e.early != "" {
		t.Fatalf("%d times two ran; %s", e.doubles, e.early)
	}
}

func running(e *engine) (n int) {
	for _, c := range e.containers(uid) {
		if c.Phase == container.Running {
			n++
		}
	}
	return n
}
