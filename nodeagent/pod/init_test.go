package pod_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/pod"
)

// staged has init containers a and c, and between them sidecar b.
func staged(p *corev1.Pod) {
	always := corev1.ContainerRestartPolicyAlways
	p.Spec.InitContainers = []corev1.Container{
		{Name: "a", Image: "busybox"}, {Name: "b", Image: "busybox", RestartPolicy: &always, StartupProbe: &corev1.Probe{}, ReadinessProbe: &corev1.Probe{}}, {Name: "c", Image: "busybox"},
	}
}

func condition(st corev1.PodStatus, kind corev1.PodConditionType) string {
	for _, c := range st.Conditions {
		if c.Type == kind {
			return strings.TrimSpace(string(c.Status) + " " + c.Reason + " " + c.Message)
		}
	}
	return ""
}

func TestInitContainersInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, n := newEngine(), newNode()
		n.say("b", container.Health{})
		w, stop := agent(t, e, n)
		defer stop()
		w.Set(wanted(staged))
		is := func(order, phase, initializedNow string) {
			t.Helper()
			synctest.Wait()
			st := n.last(uid)
			if got := strings.Join(e.order, " "); got != order || string(st.Phase) != phase || condition(st, corev1.PodInitialized) != initializedNow {
				t.Errorf("order %s, phase %s, initialized %s; want %s, %s, %s", got, st.Phase, condition(st, corev1.PodInitialized), order, phase, initializedNow)
			}
		}
		is("+a", "Pending", "False ContainersNotInitialized containers with incomplete status: [a b c]")
		if st := n.last(uid); st.ContainerStatuses[0].State.Waiting.Reason != pod.ReasonPodInitializing || st.InitContainerStatuses[0].State.Running == nil {
			t.Errorf("status: %+v", st)
		}
		e.exit(uid, "a", 1)
		is("+a +a", "Pending", "False ContainersNotInitialized containers with incomplete status: [a b c]")
		e.exit(uid, "a", 0)
		is("+a +a +b", "Pending", "False ContainersNotInitialized containers with incomplete status: [b c]")
		n.say("b", container.Health{Started: true, Ready: true})
		w.Nudge(uid)
		is("+a +a +b +c", "Pending", "False ContainersNotInitialized containers with incomplete status: [c]")
		e.exit(uid, "c", 0)
		is("+a +a +b +c +main", "Running", "True")
		if st := n.last(uid); condition(st, corev1.PodReady) != "True" || !st.InitContainerStatuses[0].Ready || st.InitContainerStatuses[0].RestartCount != 1 {
			t.Errorf("status: %+v", st)
		}
		e.exit(uid, "b", 0) // a sidecar always runs
		is("+a +a +b +c +main +b", "Running", "True")
		n.say("b", container.Health{Started: true})
		w.Nudge(uid)
		synctest.Wait()
		if got := condition(n.last(uid), corev1.PodReady); got != "False ContainersNotReady containers with unready status: [b]" {
			t.Errorf("with a sidecar that is not ready: %s", got)
		}
		w.Set(wanted(staged, deleted(20)))
		synctest.Wait()
		if got := strings.Join(e.order[6:], " "); got != "-main -b" || !n.isGone(uid) {
			t.Errorf("stopped in order %s", got)
		}
	})
}

// TestSidecarsDoNotHoldAPod: it is over when its containers are, and its phase
// says so when the sidecars, the last one first, have ended too.
func TestSidecarsDoNotHoldAPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, n := newEngine(), newNode()
		two := func(p *corev1.Pod) {
			staged(p)
			p.Spec.InitContainers = []corev1.Container{p.Spec.InitContainers[1], *p.Spec.InitContainers[1].DeepCopy()}
			p.Spec.InitContainers[1].Name = "b2"
			p.Spec.RestartPolicy = corev1.RestartPolicyNever
		}
		w, stop := agent(t, e, n)
		defer stop()
		w.Set(wanted(two))
		synctest.Wait()
		e.exit(uid, "main", 0)
		synctest.Wait()
		if got := strings.Join(e.order, " "); got != "+b +b2 +main -b2 -b" || n.last(uid).Phase != corev1.PodSucceeded {
			t.Errorf("order %s, phase %s", got, n.last(uid).Phase)
		}
		if e.pods[uid].Running || len(n.attached) != 0 || len(e.containers(uid)) != 3 {
			t.Errorf("a pod that is over keeps its address or its infra container, or loses its containers: %+v", e.pods[uid])
		}
	})
}

func TestInitContainerFailsForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, n := newEngine(), newNode()
		w, stop := agent(t, e, n)
		defer stop()
		w.Set(wanted(staged, restart(corev1.RestartPolicyNever)))
		synctest.Wait()
		e.exit(uid, "a", 0)
		synctest.Wait()
		e.exit(uid, "c", 3)
		synctest.Wait()
		st := n.last(uid)
		if st.Phase != corev1.PodFailed || st.InitContainerStatuses[2].State.Terminated.ExitCode != 3 || strings.Join(e.order, " ") != "+a +b +c -b" {
			t.Errorf("%s after %v: %+v", st.Phase, e.order, st.InitContainerStatuses)
		}
	})
}

func TestInitCrashLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, n := newEngine(), newNode()
		w, stop := agent(t, e, n)
		defer stop()
		w.Set(wanted(staged))
		for range 2 {
			synctest.Wait()
			e.exit(uid, "a", 1)
		}
		synctest.Wait()
		if st := n.last(uid).InitContainerStatuses[0]; st.State.Waiting == nil || st.State.Waiting.Reason != pod.ReasonCrashLoopBackOff {
			t.Errorf("status: %+v", st)
		}
	})
}

// TestInitContainersRunOncePerBoot: neither a killed agent nor an init container
// that is gone runs them again (nor an infra container that is killed, see
// TestPodBeginsAnewWhenItsInfraContainerIsKilled); a reboot does.
func TestInitContainersRunOncePerBoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, n := newEngine(), newNode()
		w, stop := agent(t, e, n)
		restartAgent := func() {
			stop()
			w, stop = agent(t, e, n)
			w.Set(wanted(staged))
			synctest.Wait()
		}
		defer func() { stop() }()
		w.Set(wanted(staged))
		synctest.Wait()
		e.exit(uid, "a", 0)
		synctest.Wait()
		restartAgent()
		e.exit(uid, "c", 0)
		synctest.Wait()
		restartAgent()
		e.mu.Lock()
		p := e.pods[uid]
		p.Containers = slices.DeleteFunc(p.Containers, func(c container.State) bool { return c.Name == "a" })
		e.mu.Unlock()
		restartAgent()
		e.exit(uid, "main", 1)
		synctest.Wait()
		if got := strings.Join(e.order, " "); got != "+a +b +c +main +main" {
			t.Errorf("order: %s", got)
		}
		if st := n.last(uid).InitContainerStatuses[0]; st.State.Terminated == nil || st.State.Terminated.Reason != pod.ReasonCompleted {
			t.Errorf("the init container that is gone: %+v", st)
		}
		e.mu.Lock()
		e.order = nil
		e.mu.Unlock()
		stop()
		e.powerCut()
		w, stop = agent(t, e, n)
		w.Set(wanted(staged))
		synctest.Wait()
		if st := n.last(uid); st.Phase != corev1.PodPending || st.ContainerStatuses[0].State.Waiting == nil || st.ContainerStatuses[0].LastTerminationState.Terminated == nil {
			t.Errorf("status after a power cut: %+v", st)
		}
		e.exit(uid, "a", 0)
		synctest.Wait()
		e.exit(uid, "c", 0)
		synctest.Wait()
		if got := strings.Join(e.order, " "); got != "+a +b +c +main" {
			t.Errorf("order after a power cut: %s", got)
		}
	})
}
