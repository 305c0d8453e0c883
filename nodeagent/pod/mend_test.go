package pod_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/container"
)

// sidekick adds a container "other" of an image of its own.
func sidekick(p *corev1.Pod) {
	p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "other", Image: "alpine", ImagePullPolicy: corev1.PullIfNotPresent})
}

// A container that was made before the machine's start, and not started, and whose
// files are lost is made anew; so is its sibling, which ran.
func TestContainerWithoutItsFilesIsMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, n := newEngine(), newNode()
		e.images["alpine"] = true
		w, stop := agent(t, e, n)
		w.Set(wanted(sidekick))
		synctest.Wait()
		stop()
		e.powerCut()
		made := e.containers(uid)[0].ID
		e.change(made, func(c *container.State) { c.StartedAt = time.Time{} })
		e.unmounted = map[string]bool{made: true}
		w, stop = agent(t, e, n)
		defer stop()
		w.Set(wanted(sidekick))
		synctest.Wait()
		if !n.has("Failed: Error: mounting storage for container") {
			t.Errorf("events: %q", n.events)
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		for _, c := range n.last(uid).ContainerStatuses {
			if c.State.Running == nil || c.RestartCount != map[string]int32{"main": 0, "other": 1}[c.Name] {
				t.Errorf("%s: %+v", c.Name, c)
			}
		}
		if len(e.starts["main"]) != 2 || len(e.starts["other"]) != 2 || e.doubles > 0 {
			t.Errorf("starts: %v", e.starts)
		}
	})
}

// A container that cannot be started is another one at each try.
func TestContainerThatCannotBeStartedIsMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, n := newEngine(), newNode()
		e.badCmd["main"] = true
		w, stop := agent(t, e, n)
		defer stop()
		w.Set(wanted())
		synctest.Wait()
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if all := e.containers(uid); len(all) != 1 || e.made != 3 || all[0].Restarts != 0 {
			t.Errorf("made %d: %+v", e.made, all)
		}
	})
}

func TestDamagedImageIsPulledAnew(t *testing.T) {
	for name, c := range map[string]struct {
		image   string
		policy  corev1.PullPolicy
		offline bool
		full    bool // of the node's disk
		removed bool
		event   string
	}{
		"pulled":         {image: "busybox", policy: corev1.PullIfNotPresent, removed: true, event: `Successfully pulled image "busybox" in the place of a damaged one`},
		"always":         {image: "busybox", policy: corev1.PullAlways, removed: true, event: `Successfully pulled image "busybox" in the place of a damaged one`},
		"offline":        {image: "busybox", policy: corev1.PullIfNotPresent, offline: true, event: `Failed to pull image "busybox" in the place of a damaged one`},
		"no room":        {image: "busybox", policy: corev1.PullIfNotPresent, full: true, event: `Failed to pull image "busybox" in the place of a damaged one`},
		"never":          {image: "busybox", policy: corev1.PullNever, event: "podman image rm --force busybox && podman load --input FILE"},
		"made on a node": {image: "localhost/a:1", policy: corev1.PullIfNotPresent, event: "podman image rm --force localhost/a:1 && podman load --input FILE"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, n := newEngine(), newNode()
				e.images[c.image], e.offline = true, c.offline
				e.full = c.full
				e.damaged = map[string]bool{c.image: true}
				w, stop := agent(t, e, n)
				defer stop()
				w.Set(wanted(func(p *corev1.Pod) {
					p.Spec.Containers[0].Image, p.Spec.Containers[0].ImagePullPolicy = c.image, c.policy
				}))
				synctest.Wait()
				if (len(e.removed) == 1) != c.removed || (n.last(uid).Phase == corev1.PodRunning) != c.removed {
					t.Errorf("removed %v, status %+v", e.removed, n.last(uid))
				}
				if !strings.Contains(strings.Join(n.events, "\n"), c.event) {
					t.Errorf("no event %q in %q", c.event, n.events)
				}
			})
		})
	}
}
