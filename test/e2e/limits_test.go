package e2e

import (
	"strings"
	"testing"

	"bramble.dev/bramble/test/cluster"
)

// TestNodeSaysWhichLimitsItCannotHold starts a pod with limits on a node whose
// user has no cgroup controllers delegated: the pod runs, and the node says
// which limits are not held, and what to do.
func TestNodeSaysWhichLimitsItCannotHold(t *testing.T) {
	t.Parallel()
	s := cluster.StartServer(t)
	s.StartNode(t, "shelf")
	s.Apply(`
apiVersion: v1
kind: Pod
metadata: {name: bounded}
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - name: c
      image: ` + cluster.TestImage + `
      command: [sleep, "1000000"]
      resources: {limits: {memory: 32Mi, cpu: 100m}}
`)
	s.WaitFor("condition=Ready", "pod/bounded")
	const path = `jsonpath={.status.conditions[?(@.type=="ResourceLimitsUnenforced")].%s}`
	if status := s.Must("get", "node", "shelf", "-o", strings.Replace(path, "%s", "status", 1)); status != "True" {
		t.Errorf("ResourceLimitsUnenforced is %q, want True", status)
	}
	message := s.Must("get", "node", "shelf", "-o", strings.Replace(path, "%s", "message", 1))
	for _, word := range []string{"memory", "cpu"} {
		if !strings.Contains(message, word) {
			t.Errorf("the message %q does not name %s", message, word)
		}
	}
}
