package pod_test

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestPullGoesOnThroughChanges: on a thin link a pull takes minutes, and a label
// must not begin it anew; another image and a deletion must end it.
func TestPullGoesOnThroughChanges(t *testing.T) {
	labelled := func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }
	otherImage := func(p *corev1.Pod) { p.Spec.Containers[0].Image = "other" }
	absent := func(p *corev1.Pod) { p.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways }
	for _, c := range []struct {
		name  string
		edits []func(*corev1.Pod)
		pulls int
		took  time.Duration
	}{
		{"label", []func(*corev1.Pod){absent, labelled}, 1, time.Minute},
		{"image", []func(*corev1.Pod){absent, otherImage}, 2, 90 * time.Second},
		{"deletion", []func(*corev1.Pod){absent, deleted(30)}, 1, 30 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, n := newEngine(), newNode()
				e.takes = time.Minute
				e.images["other"] = true
				w, stop := agent(t, e, n)
				defer stop()
				w.Set(wanted(absent))
				time.Sleep(30 * time.Second)
				w.Set(wanted(c.edits...))
				time.Sleep(c.took - 30*time.Second)
				synctest.Wait()
				if len(e.pulls) != c.pulls {
					t.Errorf("%d pulls, want %d", len(e.pulls), c.pulls)
				}
				if running := n.last(uid).Phase == corev1.PodRunning; running == n.isGone(uid) {
					t.Errorf("running %v, gone %v", running, n.isGone(uid))
				}
			})
		})
	}
}

// TestSurroundingsSideBySide: address, volumes and Podman's pod need not wait
// for each other.
func TestSurroundingsSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, n := newEngine(), newNode()
		e.sandbox, n.sandbox = time.Minute, time.Minute
		w, stop := agent(t, e, n)
		defer stop()
		w.Set(wanted())
		time.Sleep(time.Minute)
		synctest.Wait()
		if n.last(uid).Phase != corev1.PodRunning {
			t.Errorf("after the time of one of them: %+v", n.last(uid))
		}
	})
}
