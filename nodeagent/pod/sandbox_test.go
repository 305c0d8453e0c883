package pod_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/container"
)

// endInfra ends the pod's infra container, as a person or the kernel does.
func (e *engine) endInfra() {
	e.mu.Lock()
	e.pods[uid].Running = false
	e.mu.Unlock()
	e.nudge(uid)
}

func TestPodBeginsAnewWhenItsInfraContainerIsKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, n := newEngine(), newNode()
		n.say("b", container.Health{Started: true, Ready: true})
		w, stop := agent(t, e, n)
		defer stop()
		w.Set(wanted(staged))
		synctest.Wait()
		e.exit(uid, "a", 0)
		synctest.Wait()
		e.exit(uid, "c", 0)
		time.Sleep(time.Minute)
		synctest.Wait()
		e.endInfra()
		time.Sleep(20 * time.Second) // sidecar b is stopped after main, and each has its back-off
		synctest.Wait()
		if got := strings.Join(e.order, " "); got != "+a +b +c +main -main -b +b +main" {
			t.Errorf("order %s", got)
		}
		if !n.has("SandboxChanged: Pod sandbox changed, it will be killed and re-created.") || e.doubles > 0 {
			t.Errorf("events %q, doubles %d", n.events, e.doubles)
		}
		st := n.last(uid)
		if st.Phase != corev1.PodRunning || st.ContainerStatuses[0].RestartCount != 1 || !st.ContainerStatuses[0].Ready {
			t.Errorf("status %+v", st)
		}
	})
}

func TestInfraContainerKilledUnderRestartPolicyNever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, n := newEngine(), newNode()
		w, stop := agent(t, e, n)
		defer stop()
		w.Set(wanted(restart(corev1.RestartPolicyNever)))
		synctest.Wait()
		e.endInfra()
		synctest.Wait()
		if st := n.last(uid); st.Phase != corev1.PodFailed || len(e.starts["main"]) != 1 {
			t.Errorf("status %+v, starts %v", st, e.starts)
		}
	})
}
