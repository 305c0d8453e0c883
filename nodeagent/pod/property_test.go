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
// the engine and the network away, in any order. At no time do two incarnations
// of a container run, or more than two exist; and in the end each container of
// a wanted pod runs, and of an unwanted one nothing is left.
func TestWhateverHappens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		happenings := rapid.SliceOfN(rapid.IntRange(0, 7), 1, 25).Draw(rt, "happenings")
		deletes := rapid.Bool().Draw(rt, "deleted at the end")
		synctest.Test(t, func(t *testing.T) {
			e, n := newEngine(), newNode()
			two := func(edits ...func(*corev1.Pod)) pod.Desired {
				d := wanted(edits...)
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
			time.Sleep(12 * time.Minute)
			synctest.Wait()
			check(t, e)
			if deletes && (len(e.pods) != 0 || len(n.attached) != 0 || len(n.mounted) != 0 || !n.isGone(uid)) {
				t.Errorf("after %v: left %v", happenings, e.pods)
			}
			if got := running(e); !deletes && got != 2 {
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
	if e.doubles > 0 || count["main"] > 2 || count["side"] > 2 {
		t.Fatalf("%d times two ran; there are %v", e.doubles, count)
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
