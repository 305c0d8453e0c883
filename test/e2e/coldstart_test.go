package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bramble.dev/bramble/test/cluster"
)

// TestColdStartWithoutServer kills every process of a node's user and empties
// its runtime directory, as a power cut does, while the server is stopped: the
// agent alone brings all ten pods back in 30 s, with the addresses they had, as
// containers that say how the last ones ended.
func TestColdStartWithoutServer(t *testing.T) {
	const pods = 10
	s := cluster.StartServer(t)
	n := s.StartNode(t, "mast")
	s.Must("create", "configmap", "settings", "--from-literal=colour=blue") // for which the record stands in
	for i := range pods {
		failover := "keep"
		if i%2 == 1 {
			failover = "move"
		}
		s.Apply(fmt.Sprintf(coloured, i, failover))
	}
	s.Apply(once)
	s.WaitFor("condition=Ready", "pods", "--all", "-A")
	before := addresses(s)

	s.Kill()
	n.Process.Kill()
	if err := n.KillAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := n.WipeRuntime(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	n.Start()
	cluster.Eventually(t, 30*time.Second, func() string {
		out, err := n.Podman(t.Context(), "ps", "--filter", "label=edge.bramble.dev/container", "--format", "{{.Names}} {{.Status}}")
		if running := strings.Count(out, " Up "); running != pods || err != nil {
			return fmt.Sprintf("%d of %d containers run (%v):\n%s", running, pods, err, out)
		}
		return ""
	})
	t.Logf("%d pods run again after %v", pods, time.Since(began))

	s.Start()
	s.WaitFor("condition=Ready", "node/mast")
	cluster.Eventually(t, 30*time.Second, func() string {
		if diff := cmp.Diff(before, addresses(s)); diff != "" {
			return diff
		}
		if ready := strings.Count(s.Must("get", "pods", "--no-headers"), "1/1"); ready != pods {
			return fmt.Sprintf("%d of %d pods are ready", ready, pods)
		}
		const last = `{.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].lastState.terminated.reason}{"\n"}`
		restarts := s.Must("get", "pods", "-o", "jsonpath={range .items[*]}"+last+"{end}")
		if want := strings.Repeat("1 ContainerStatusUnknown\n", pods); restarts != want {
			return fmt.Sprintf("restarts and last states: %s", restarts)
		}
		state := s.Must("get", "pod", "once", "-n", "other", "-o", "jsonpath={.status.phase} {.status.containerStatuses[0].state.terminated.reason} {.status.containerStatuses[0].state.terminated.exitCode}")
		if state != "Failed ContainerStatusUnknown 137" {
			return "the pod that is not restarted is " + state
		}
		return ""
	})
}

// once is not restarted: its container was cut off.
const once = `
apiVersion: v1
kind: Namespace
metadata: {name: other}
---
apiVersion: v1
kind: Pod
metadata: {name: once, namespace: other}
spec:
  terminationGracePeriodSeconds: 0
  restartPolicy: Never
  containers: [{name: main, image: ` + cluster.TestImage + `, command: [sleep, "1000000"]}]
`

const sleeper = `
apiVersion: v1
kind: Pod
metadata:
  name: sleeper-%d
  annotations: {edge.bramble.dev/failover: %s}
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - name: main
      image: ` + cluster.TestImage + `
      command: [sleep, "1000000"]
`

// coloured is a sleeper that cannot be made without a ConfigMap.
const coloured = sleeper + `      env: [{name: COLOUR, valueFrom: {configMapKeyRef: {name: settings, key: colour}}}]
`

// addresses lists the pods with their addresses.
func addresses(s *cluster.Server) string {
	return s.Must("get", "pods", "-o", "jsonpath={range .items[*]}{.metadata.name} {.status.podIP}{\"\\n\"}{end}")
}
