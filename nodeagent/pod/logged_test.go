package pod_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/pod"
)

// TestLogged: kubectl logs is of the state that kubectl describe shows, and
// kubectl logs --previous of the last state.
func TestLogged(t *testing.T) {
	at := time.Unix(1000, 0)
	made := container.State{ID: "new", Name: "main", Restarts: 1, Phase: container.Created}
	runs := container.State{ID: "new", Name: "main", Restarts: 1, Phase: container.Running, StartedAt: at}
	failed := container.State{ID: "new", Name: "main", Restarts: 1, Phase: container.Exited, ExitCode: 1, StartedAt: at, FinishedAt: at.Add(time.Second)}
	done := failed
	done.ExitCode = 0
	before := failed
	before.ID, before.Restarts = "old", 0
	const always, onFailure, never = corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever
	for name, c := range map[string]struct {
		policy       corev1.RestartPolicy
		there        []container.State
		leaving      bool
		want, wantIt string // of the state, and of the last state
	}{
		"nothing yet":                {always, nil, false, "", ""},
		"not started yet":            {always, []container.State{made}, false, "", ""},
		"runs":                       {always, []container.State{runs}, false, "new", ""},
		"runs again":                 {always, []container.State{before, runs}, false, "new", "old"},
		"made again":                 {always, []container.State{before, made}, false, "old", "old"},
		"waits to be restarted":      {always, []container.State{failed}, false, "new", "new"},
		"waits once more":            {always, []container.State{before, failed}, false, "new", "new"},
		"succeeded, and begins anew": {always, []container.State{before, done}, false, "new", "new"},
		"will be restarted":          {onFailure, []container.State{before, failed}, false, "new", "new"},
		"is done":                    {onFailure, []container.State{before, done}, false, "new", "old"},
		"failed for good":            {never, []container.State{failed}, false, "new", ""},
		"is being deleted":           {always, []container.State{before, failed}, true, "new", "old"},
	} {
		p := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: c.policy, Containers: []corev1.Container{{Name: "main"}}}}
		if c.leaving {
			p.DeletionTimestamp = &metav1.Time{Time: at}
		}
		d, engine := pod.Desired{Pod: p}, container.Pod{Containers: c.there}
		if got := pod.Logged(d, engine, "main", false).ID; got != c.want {
			t.Errorf("%s: the log is of %q, want %q", name, got, c.want)
		}
		if got := pod.Logged(d, engine, "main", true).ID; got != c.wantIt {
			t.Errorf("%s: the previous log is of %q, want %q", name, got, c.wantIt)
		}
	}
}
