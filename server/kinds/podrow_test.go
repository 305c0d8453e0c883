package kinds_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func waiting(reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "c", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
}

func ended(t corev1.ContainerStateTerminated) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "c", State: corev1.ContainerState{Terminated: &t}}
}

func running(ready bool) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "c", Ready: ready, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

func TestPodRow(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	yes := true
	done := corev1.ContainerStateTerminated{Reason: "Completed"}
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	deleted := func(p *corev1.Pod) { at := ago(time.Minute); p.DeletionTimestamp = &at }
	for _, tt := range []struct {
		name   string
		phase  corev1.PodPhase
		inits  []corev1.ContainerStatus
		ctrs   []corev1.ContainerStatus
		change func(*corev1.Pod)
		want   string // READY STATUS RESTARTS
	}{
		{"pending", corev1.PodPending, nil, nil, nil, "0/1 | Pending | 0"},
		{"creating", corev1.PodPending, nil, []corev1.ContainerStatus{waiting("ContainerCreating")}, nil, "0/1 | ContainerCreating | 0"},
		{"pull", corev1.PodPending, nil, []corev1.ContainerStatus{waiting("ImagePullBackOff")}, nil, "0/1 | ImagePullBackOff | 0"},
		{"running", corev1.PodRunning, nil, []corev1.ContainerStatus{running(true)}, nil, "1/1 | Running | 0"},
		{"not ready", corev1.PodRunning, nil, []corev1.ContainerStatus{running(false)}, nil, "0/1 | Running | 0"},
		{"completed", corev1.PodSucceeded, nil, []corev1.ContainerStatus{ended(done)}, nil, "0/1 | Completed | 0"},
		{"error", corev1.PodFailed, nil, []corev1.ContainerStatus{ended(corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 1})}, nil, "0/1 | Error | 0"},
		{"exit code", corev1.PodFailed, nil, []corev1.ContainerStatus{ended(corev1.ContainerStateTerminated{ExitCode: 3})}, nil, "0/1 | ExitCode:3 | 0"},
		{"signal", corev1.PodFailed, nil, []corev1.ContainerStatus{ended(corev1.ContainerStateTerminated{Signal: 9, ExitCode: 137})}, nil, "0/1 | Signal:9 | 0"},
		{"crash loop", corev1.PodRunning, nil, []corev1.ContainerStatus{func() corev1.ContainerStatus {
			c := waiting("CrashLoopBackOff")
			c.RestartCount = 3
			c.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{FinishedAt: ago(2 * time.Minute)}
			return c
		}()}, nil, "0/1 | CrashLoopBackOff | 3 (2m ago)"},
		{"one done, one running, ready", corev1.PodRunning, nil, []corev1.ContainerStatus{ended(done), running(true)}, func(p *corev1.Pod) { p.Status.Conditions = []corev1.PodCondition{ready} }, "1/1 | Running | 0"},
		{"one done, one running", corev1.PodRunning, nil, []corev1.ContainerStatus{ended(done), running(true)}, nil, "1/1 | NotReady | 0"},
		{"evicted", corev1.PodFailed, nil, nil, func(p *corev1.Pod) { p.Status.Reason = "Evicted" }, "0/1 | Evicted | 0"},
		{"terminating", corev1.PodRunning, nil, []corev1.ContainerStatus{running(true)}, deleted, "1/1 | Terminating | 0"},
		{"ended, deleted", corev1.PodFailed, nil, []corev1.ContainerStatus{ended(corev1.ContainerStateTerminated{Reason: "Error"})}, deleted, "0/1 | Error | 0"},
		{"lost", corev1.PodRunning, nil, nil, func(p *corev1.Pod) { deleted(p); p.Status.Reason = "NodeLost" }, "0/1 | Unknown | 0"},
		{"gated", corev1.PodPending, nil, nil, func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Reason: "SchedulingGated"}}
		}, "0/1 | SchedulingGated | 0"},
		{"init", corev1.PodPending, []corev1.ContainerStatus{ended(done), running(false)}, []corev1.ContainerStatus{waiting("PodInitializing")}, nil, "0/1 | Init:1/2 | 0"},
		{"init waits", corev1.PodPending, []corev1.ContainerStatus{waiting("ImagePullBackOff")}, nil, nil, "0/1 | Init:ImagePullBackOff | 0"},
		{"init fails", corev1.PodPending, []corev1.ContainerStatus{ended(corev1.ContainerStateTerminated{ExitCode: 2})}, nil, nil, "0/1 | Init:ExitCode:2 | 0"},
		{"init killed", corev1.PodPending, []corev1.ContainerStatus{ended(corev1.ContainerStateTerminated{Signal: 9, ExitCode: 137})}, nil, nil, "0/1 | Init:Signal:9 | 0"},
		{"init error", corev1.PodPending, []corev1.ContainerStatus{ended(corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 2})}, nil, nil, "0/1 | Init:Error | 0"},
		{"sidecar", corev1.PodRunning, []corev1.ContainerStatus{{Name: "i0", Started: &yes, Ready: true}}, []corev1.ContainerStatus{running(true)}, func(p *corev1.Pod) { p.Spec.InitContainers[0].RestartPolicy = &always }, "2/2 | Running | 0"},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "c"}}, InitContainers: []corev1.Container{{Name: "i0"}, {Name: "i1"}}[:min(2, 2*len(tt.inits))],
		}}
		p.Status = corev1.PodStatus{Phase: tt.phase, InitContainerStatuses: tt.inits, ContainerStatuses: tt.ctrs}
		if tt.change != nil {
			tt.change(p)
		}
		if got := cells(t, "pods", p); !strings.HasPrefix(got, tt.want+" | ") {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestPodRowWide(t *testing.T) {
	p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1", ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "a"}, {ConditionType: "b"}}}}
	p.Status.PodIP = "10.100.1.2"
	p.Status.Conditions = []corev1.PodCondition{{Type: "b", Status: corev1.ConditionTrue}}
	if got, want := cells(t, "pods", p), `0/0 |  | 0 | 10.100.1.2 | n1 | \u003cnone\u003e | 1/2`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
