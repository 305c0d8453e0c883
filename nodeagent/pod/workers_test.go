package pod_test

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/pod"
)

const uid = "0001"

// wanted is a pod of one container "main", changed by edits.
func wanted(edits ...func(*corev1.Pod)) pod.Desired {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "hello", Namespace: "default", UID: types.UID(uid)},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyAlways,
			Containers:    []corev1.Container{{Name: "main", Image: "busybox", ImagePullPolicy: corev1.PullIfNotPresent}},
		},
	}
	for _, edit := range edits {
		edit(p)
	}
	return pod.Desired{Pod: p, Address: netip.MustParseAddr("10.100.1.2")}
}

func restart(policy corev1.RestartPolicy) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.RestartPolicy = policy }
}

func deleted(grace int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		now := metav1.Now()
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &now, &grace
	}
}

// agent runs workers in the test's bubble until stop.
func agent(t *testing.T, e *engine, n *node) (w *pod.Workers, stop func()) {
	return agentOn(t, e, e, n, nil)
}

// agentOn runs workers that see e's pods through pods, with a changed config.
func agentOn(t *testing.T, e *engine, pods pod.Pods, n *node, change func(*pod.Config)) (w *pod.Workers, stop func()) {
	if e.dir == "" {
		dir, err := os.MkdirTemp("", "pods")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		e.dir, e.booted = dir, time.Now()
	}
	cfg := pod.Config{
		Pods: pods, Containers: e, Images: e, Network: n, Volumes: n, Source: n, Reporter: n, Probes: &n.prober,
		Uptime: func() time.Duration { return time.Since(e.booted) },
		HostIP: func() string { return "192.0.2.1" }, Resolver: func(bool) pod.Resolver { return pod.Resolver{} },
		Dir: e.dir, Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&cfg)
	}
	w = pod.New(cfg)
	e.mu.Lock()
	e.nudge = func(uid string) { w.Nudge(uid) }
	e.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.Run(ctx)
	}()
	return w, func() {
		cancel()
		<-done
	}
}

func TestPodComesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, n := newEngine(), newNode()
		w, stop := agent(t, e, n)
		defer stop()
		w.Set(wanted())
		synctest.Wait()
		st := n.last(uid)
		if st.Phase != corev1.PodRunning || st.PodIP != "10.100.1.2" || st.HostIP != "192.0.2.1" || !st.ContainerStatuses[0].Ready {
			t.Errorf("status: %+v", st)
		}
		for _, event := range []string{`Pulled: Container image "busybox" already present on machine`, "Created: Created container: main", "Started: Started container main"} {
			if !n.has(event) {
				t.Errorf("no event %q in %q", event, n.events)
			}
		}
		w.Refresh()
		synctest.Wait()
		if len(e.starts["main"]) != 1 {
			t.Errorf("started %d times", len(e.starts["main"]))
		}
	})
}

func TestCrashBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, n := newEngine(), newNode()
		w, stop := agent(t, e, n)
		defer stop()
		w.Set(wanted())
		synctest.Wait()
		var waits []time.Duration
		for range 8 {
			ended := time.Now()
			e.exit(uid, "main", 1)
			synctest.Wait()
			if st := n.last(uid); len(waits) > 0 && st.ContainerStatuses[0].State.Waiting.Reason != pod.ReasonCrashLoopBackOff {
				t.Fatalf("status while waiting: %+v", st.ContainerStatuses[0])
			}
			time.Sleep(6 * time.Minute)
			synctest.Wait()
			waits = append(waits, e.starts["main"][len(e.starts["main"])-1].Sub(ended))
		}
		want := []time.Duration{0, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 300 * time.Second, 300 * time.Second}
		if diff := cmp.Diff(want, waits); diff != "" {
			t.Errorf("waits before restarts (-want +got):\n%s", diff)
		}
		st := n.last(uid).ContainerStatuses[0]
		if st.RestartCount != 8 || st.LastTerminationState.Terminated == nil || st.LastTerminationState.Terminated.Reason != pod.ReasonError {
			t.Errorf("status after restarts: %+v", st)
		}
		if got := len(e.containers(uid)); got != 2 {
			t.Errorf("%d containers are kept, want the running one and the last", got)
		}
		time.Sleep(10 * time.Minute)
		ended := time.Now()
		e.exit(uid, "main", 1)
		synctest.Wait()
		if got := e.starts["main"][len(e.starts["main"])-1].Sub(ended); got != 0 {
			t.Errorf("after ten good minutes it waited %v", got)
		}
	})
}

func TestRestartPolicies(t *testing.T) {
	for _, c := range []struct {
		policy corev1.RestartPolicy
		code   int
		phase  corev1.PodPhase
		starts int
	}{
		{corev1.RestartPolicyAlways, 0, corev1.PodRunning, 2},
		{corev1.RestartPolicyAlways, 1, corev1.PodRunning, 2},
		{corev1.RestartPolicyOnFailure, 0, corev1.PodSucceeded, 1},
		{corev1.RestartPolicyOnFailure, 1, corev1.PodRunning, 2},
		{corev1.RestartPolicyNever, 0, corev1.PodSucceeded, 1},
		{corev1.RestartPolicyNever, 1, corev1.PodFailed, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			e, n := newEngine(), newNode()
			w, stop := agent(t, e, n)
			defer stop()
			w.Set(wanted(restart(c.policy)))
			synctest.Wait()
			time.Sleep(time.Second)
			e.exit(uid, "main", c.code)
			synctest.Wait()
			if got := n.last(uid).Phase; got != c.phase || len(e.starts["main"]) != c.starts {
				t.Errorf("%s, exit %d: phase %s after %d starts, want %s after %d", c.policy, c.code, got, len(e.starts["main"]), c.phase, c.starts)
			}
		})
	}
}

func TestKilledAgentStartsNothingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, n := newEngine(), newNode()
		w, stop := agent(t, e, n)
		w.Set(wanted())
		synctest.Wait()
		stop()
		w, stop = agent(t, e, newNode())
		defer stop()
		w.Set(wanted())
		synctest.Wait()
		if e.made != 1 || len(e.starts["main"]) != 1 {
			t.Errorf("%d containers made, %d starts", e.made, len(e.starts["main"]))
		}
	})
}

// TestPowerCut: after a boot a container is another one, which says how the last
// one ended; the registry need not be there, whatever the policy.
func TestPowerCut(t *testing.T) {
	for _, c := range []struct {
		policy corev1.RestartPolicy
		phase  corev1.PodPhase
		starts int
	}{
		{corev1.RestartPolicyAlways, corev1.PodRunning, 2},
		{corev1.RestartPolicyOnFailure, corev1.PodRunning, 2},
		{corev1.RestartPolicyNever, corev1.PodFailed, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			e, n := newEngine(), newNode()
			always := func(p *corev1.Pod) { p.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways }
			w, stop := agent(t, e, n)
			w.Set(wanted(restart(c.policy), always))
			synctest.Wait()
			stop()
			e.powerCut()
			e.offline = true
			w, stop = agent(t, e, n)
			defer stop()
			w.Set(wanted(restart(c.policy), always))
			synctest.Wait()
			if got := n.last(uid).Phase; got != c.phase || len(e.starts["main"]) != c.starts || e.made != c.starts {
				t.Errorf("%s: phase %s after %d starts of %d containers, want %s after %d", c.policy, got, len(e.starts["main"]), e.made, c.phase, c.starts)
			}
			st := n.last(uid).ContainerStatuses[0]
			end := st.State.Terminated
			if c.starts > 1 {
				end = st.LastTerminationState.Terminated
			}
			if int(st.RestartCount) != c.starts-1 || end == nil || end.Reason != pod.ReasonStatusUnknown || end.ExitCode != 137 {
				t.Errorf("%s: %+v", c.policy, st)
			}
			if c.starts == 1 {
				return
			}
			// From then on the policy holds.
			e.exit(uid, "main", 1)
			synctest.Wait()
			if got := n.last(uid).ContainerStatuses[0].State.Waiting; got == nil || got.Reason != pod.ReasonErrImagePull || len(e.containers(uid)) != 1 {
				t.Errorf("%s: after the next end: %+v, containers %+v", c.policy, n.last(uid).ContainerStatuses[0], e.containers(uid))
			}
		})
	}
}

func TestDeletionLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, n := newEngine(), newNode()
		e.ignoresTerm = true
		w, stop := agent(t, e, n)
		defer stop()
		w.Set(wanted())
		synctest.Wait()
		began := time.Now()
		w.Set(wanted(deleted(20)))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n.isGone(uid) || e.containers(uid)[0].Phase != container.Running {
			t.Error("it was killed before its grace was over")
		}
		for synctest.Wait(); !n.isGone(uid); synctest.Wait() {
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took > 21*time.Second {
			t.Errorf("it took %v, want about the grace of 20 s", took)
		}
		if len(e.pods) != 0 || len(n.attached) != 0 || len(n.mounted) != 0 {
			t.Errorf("left: pods %v, networks %v, volumes %v", e.pods, n.attached, n.mounted)
		}
		if n.last(uid).ContainerStatuses[0].State.Terminated == nil || !n.has("Killing: Stopping container main") {
			t.Errorf("the end was not reported: %+v, events %q", n.last(uid), n.events)
		}
		w.Remove(uid)
		synctest.Wait()
		if w.Known(uid) || !n.forgotten[uid] {
			t.Errorf("the worker is kept: %v; nobody wants the pod, and that was told: %v", w.Known(uid), n.forgotten[uid])
		}
	})
}

func TestForcedDeletionCutsGraceShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, n := newEngine(), newNode()
		e.ignoresTerm = true
		w, stop := agent(t, e, n)
		defer stop()
		w.Set(wanted())
		synctest.Wait()
		w.Set(wanted(deleted(300)))
		time.Sleep(5 * time.Second)
		w.Remove(uid)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if len(e.pods) != 0 || !n.isGone(uid) {
			t.Errorf("it still runs: %v", e.containers(uid))
		}
	})
}

func TestPullBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, n := newEngine(), newNode()
		w, stop := agent(t, e, n)
		defer stop()
		began := time.Now()
		w.Set(wanted(func(p *corev1.Pod) { p.Spec.Containers[0].Image = "nosuch" }))
		time.Sleep(time.Minute)
		synctest.Wait()
		var at []time.Duration
		for _, pull := range e.pulls {
			at = append(at, pull.Sub(began))
		}
		if diff := cmp.Diff([]time.Duration{0, 10 * time.Second, 30 * time.Second}, at); diff != "" {
			t.Errorf("pulls (-want +got):\n%s", diff)
		}
		if want := []string{"ContainerCreating", "ErrImagePull", "ImagePullBackOff", "ErrImagePull", "ImagePullBackOff", "ErrImagePull", "ImagePullBackOff"}; !slices.Equal(want, n.reasons) {
			t.Errorf("reasons %q, want %q", n.reasons, want)
		}
		e.mu.Lock()
		e.images["nosuch"] = true
		e.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n.last(uid).Phase != corev1.PodRunning {
			t.Errorf("the image is there and the pod is %s", n.last(uid).Phase)
		}
	})
}

func TestReasons(t *testing.T) {
	for name, c := range map[string]struct {
		edit   func(*corev1.Pod)
		bad    bool
		reason string
		phase  corev1.PodPhase
	}{
		"never pull":       {func(p *corev1.Pod) { c := &p.Spec.Containers[0]; c.Image, c.ImagePullPolicy = "x", corev1.PullNever }, false, pod.ReasonErrImageNeverPull, corev1.PodPending},
		"bad image name":   {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "!" }, false, pod.ReasonInvalidImageName, corev1.PodPending},
		"no such command":  {func(*corev1.Pod) {}, true, pod.ReasonRunContainerError, corev1.PodPending},
		"missing config":   {envFrom("nosuch"), false, pod.ReasonCreateConfigError, corev1.PodPending},
		"command for once": {restart(corev1.RestartPolicyNever), true, "", corev1.PodFailed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, n := newEngine(), newNode()
				e.badCmd["main"] = c.bad
				w, stop := agent(t, e, n)
				defer stop()
				w.Set(wanted(c.edit))
				synctest.Wait()
				st := n.last(uid)
				state := st.ContainerStatuses[0].State
				if st.Phase != c.phase || c.reason != "" && (state.Waiting == nil || state.Waiting.Reason != c.reason || state.Waiting.Message == "") {
					t.Errorf("status: %s %+v, want %s %s", st.Phase, state, c.phase, c.reason)
				}
				if c.reason == "" && (state.Terminated == nil || state.Terminated.ExitCode != 128 || state.Terminated.Reason != pod.ReasonStartError) {
					t.Errorf("status: %+v", state)
				}
			})
		})
	}
}

func envFrom(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}}
	}
}

func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, n := newEngine(), newNode()
		w, stop := agent(t, e, n)
		defer stop()
		w.Set(wanted(func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(60)) }))
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if n.last(uid).Phase != corev1.PodRunning {
			t.Fatalf("before the deadline: %+v", n.last(uid))
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		st := n.last(uid)
		if st.Phase != corev1.PodFailed || st.Reason != pod.ReasonDeadlineExceeded || e.containers(uid)[0].Phase != container.Exited {
			t.Errorf("after the deadline: %+v, %+v", st, e.containers(uid))
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(e.starts["main"]) != 1 {
			t.Error("it was started again")
		}
	})
}

func TestEngineAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, n := newEngine(), newNode()
		e.down = true
		w, stop := agent(t, e, n)
		defer stop()
		w.Set(wanted())
		time.Sleep(30 * time.Second)
		e.mu.Lock()
		e.down = false
		e.mu.Unlock()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n.last(uid).Phase != corev1.PodRunning {
			t.Errorf("status: %+v", n.last(uid))
		}
	})
}

func TestHeldPodDoesNotStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, n := newEngine(), newNode()
		w, stop := agent(t, e, n)
		defer stop()
		d := wanted()
		d.Hold = true
		w.Set(d)
		time.Sleep(time.Hour)
		synctest.Wait()
		if e.made != 0 {
			t.Fatal("it was made")
		}
		w.Set(wanted())
		synctest.Wait()
		if len(e.starts["main"]) != 1 {
			t.Error("it was not started when it might")
		}
	})
}

func TestChangedContainerIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, n := newEngine(), newNode()
		w, stop := agent(t, e, n)
		defer stop()
		w.Set(wanted())
		synctest.Wait()
		e.mu.Lock()
		e.images["other"] = true
		e.mu.Unlock()
		w.Set(wanted(func(p *corev1.Pod) { p.Spec.Containers[0].Image = "other" }))
		synctest.Wait()
		st := n.last(uid).ContainerStatuses[0]
		if st.ImageID != "sha256:other" || st.RestartCount != 1 || st.State.Running == nil {
			t.Errorf("status: %+v", st)
		}
	})
}

// TestQuickContainer ends before Podman has noted its start.
func TestQuickContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, n := newEngine(), newNode()
		w, stop := agent(t, e, n)
		defer stop()
		w.Set(wanted(restart(corev1.RestartPolicyNever)))
		synctest.Wait()
		e.mu.Lock()
		c := &e.pods[uid].Containers[0]
		c.Phase, c.FinishedAt = container.Exited, c.StartedAt.Add(-time.Millisecond)
		e.mu.Unlock()
		w.Nudge(uid)
		synctest.Wait()
		if st := n.last(uid); st.Phase != corev1.PodSucceeded || st.ContainerStatuses[0].State.Terminated.Reason != pod.ReasonCompleted {
			t.Errorf("status: %+v", st)
		}
	})
}
