package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bramble.dev/bramble/test/cluster"
)

// staged is a pod with init containers, a sidecar, hooks and variables from all
// sources; each writes to the volume what it did.
const staged = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {COLOUR: blue, shape: round}
---
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {password: hush}
---
apiVersion: v1
kind: Pod
metadata: {name: staged, labels: {app: staged}, annotations: {note: "of mine"}}
spec:
  terminationGracePeriodSeconds: 5
  volumes: [{name: v, emptyDir: {}}, {name: m, emptyDir: {medium: Memory}}]
  initContainers:
    - name: first
      image: ` + cluster.TestImage + `
      command: [sh, -c, "echo first $PASSWORD >> /v/log"]
      env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: keys, key: password}}}]
      volumeMounts: [{name: v, mountPath: /v}]
    - name: side
      image: ` + cluster.TestImage + `
      restartPolicy: Always
      command: [sh, -c, "sleep 1; echo side >> /v/log; touch /dev/shm/up; trap 'exit 0' TERM; while :; do sleep 0.1; done"]
      startupProbe: {exec: {command: [cat, /dev/shm/up]}, periodSeconds: 1, timeoutSeconds: 20, failureThreshold: 20}
      volumeMounts: [{name: v, mountPath: /v}]
    - name: last
      image: ` + cluster.TestImage + `
      command: [sh, -c, "echo last >> /v/log"]
      volumeMounts: [{name: v, mountPath: /v}]
  containers:
    - name: main
      image: ` + cluster.TestImage + `
      command: [sh, -c, "env; echo memory: $(ls /m); touch /m/mark; mkdir /www2; cp /v/log /www2/; exec httpd -f -p 8080 -h /www2"]
      ports: [{name: web, containerPort: 8080}]
      resources: {limits: {memory: 64Mi, cpu: 1500m}}
      envFrom: [{prefix: P_, configMapRef: {name: settings}}, {secretRef: {name: absent, optional: true}}]
      env:
        - {name: SHAPE, valueFrom: {configMapKeyRef: {name: settings, key: shape}}}
        - {name: ME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: APP, valueFrom: {fieldRef: {fieldPath: "metadata.labels['app']"}}}
        - {name: NOTE, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['note']"}}}
        - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
        - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
        - {name: MEBIBYTES, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}
        - {name: CORES, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
      lifecycle: {postStart: {exec: {command: [sh, -c, "sleep 0.5; echo hooked >> /v/log"]}}, preStop: {sleep: {seconds: 1}}}
      readinessProbe: {httpGet: {path: /log, port: web}, periodSeconds: 1}
      livenessProbe: {tcpSocket: {port: web}, periodSeconds: 1, timeoutSeconds: 20}
      volumeMounts: [{name: v, mountPath: /v}, {name: m, mountPath: /m}]
`

// TestPodInStages brings up a pod with init containers, a sidecar, hooks,
// probes and variables from elsewhere; kills the agent, which changes nothing;
// cuts the power, after which all of it happens again; and deletes the pod.
func TestPodInStages(t *testing.T) {
	t.Parallel()
	s := cluster.StartServer(t)
	n := s.StartNode(t, "mast")
	s.Apply(staged)
	s.WaitFor("condition=Ready", "pod/staged")
	if row := s.Must("get", "pod", "staged", "--no-headers"); !strings.Contains(row, "2/2") || !strings.Contains(row, "Running") {
		t.Errorf("the pod's row: %s", row)
	}
	env := s.Must("logs", "staged", "-c", "main")
	for _, want := range []string{"P_COLOUR=blue", "P_shape=round", "SHAPE=round", "ME=staged", "APP=staged", "NOTE=of mine", "NODE=mast", "MEBIBYTES=64", "CORES=2",
		"IP=" + s.Must("get", "pod", "staged", "-o", "jsonpath={.status.podIP}")} {
		if !strings.Contains(env, want+"\n") {
			t.Errorf("no variable %s in:\n%s", want, env)
		}
	}
	did := func(want string) {
		t.Helper()
		cluster.Eventually(t, 30*time.Second, func() string {
			out, err := n.Podman(t.Context(), "exec", containerOf(t, n, "main"), "cat", "/v/log")
			if got := strings.Join(strings.Fields(out), " "); got != want || err != nil {
				return fmt.Sprintf("what was done: %s, %v", got, err)
			}
			return ""
		})
	}
	did("first hush side last hooked")

	n.Process.Kill()
	n.Start()
	s.WaitFor("condition=Ready", "node/mast")
	timer := time.NewTimer(2 * time.Second)
	<-timer.C
	did("first hush side last hooked")
	if restarts := s.Must("get", "pod", "staged", "-o", "jsonpath={.status.initContainerStatuses[*].restartCount} {.status.containerStatuses[*].restartCount}"); restarts != "0 0 0 0" {
		t.Errorf("restarts after the agent's: %s", restarts)
	}

	n.Process.Kill()
	if err := n.KillAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := n.WipeRuntime(); err != nil {
		t.Fatal(err)
	}
	n.Start()
	did("first hush side last hooked first hush side last hooked")
	s.WaitFor("condition=Ready", "pod/staged")
	beganAnew(t, s)
	began := time.Now()
	s.Must("delete", "pod", "staged")
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the deletion took %v", took)
	}
}

// beganAnew looks at pod staged after a boot: each container is another one, with
// files of its own and nothing left in memory, and says how the last one ended.
func beganAnew(t *testing.T, s *cluster.Server) {
	t.Helper()
	const each = "{.restartCount} {.lastState.terminated.reason} {.lastState.terminated.exitCode},"
	got := s.Must("get", "pod", "staged", "-o", "jsonpath={range .status.initContainerStatuses[*]}"+each+"{end}{range .status.containerStatuses[*]}"+each+"{end}")
	if want := "1 Completed 0,1 ContainerStatusUnknown 137,1 Completed 0,1 ContainerStatusUnknown 137,"; got != want {
		t.Errorf("restarts and last states after a boot: %s, want %s", got, want)
	}
	log := s.Must("logs", "staged", "-c", "main")
	if strings.Contains(log, "mkdir:") || !strings.Contains(log, "memory:\n") {
		t.Errorf("files of before the boot are there:\n%s", log)
	}
	if log := s.Must("logs", "--previous", "staged", "-c", "main"); !strings.Contains(log, "ME=staged\n") {
		t.Errorf("the log of before the boot:\n%s", log)
	}
}

// containerOf is the engine's id of a running container.
func containerOf(t *testing.T, n *cluster.Node, name string) string {
	t.Helper()
	out, err := n.Podman(t.Context(), "ps", "--quiet", "--filter", "label=edge.bramble.dev/container="+name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// TestProbes lets probes fail: a liveness probe restarts its container, a
// readiness probe takes the pod out, a failing init container and a log as a
// termination message are told, a finished pod gives its address back.
func TestProbes(t *testing.T) {
	t.Parallel()
	s := cluster.StartServer(t)
	n := s.StartNode(t, "mast")
	s.Apply(`
apiVersion: v1
kind: Pod
metadata: {name: frail}
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: main
      image: ` + cluster.TestImage + `
      command: [sh, -c, "touch /tmp/ok /tmp/ready; sleep 1000"]
      livenessProbe: {exec: {command: [cat, /tmp/ok]}, periodSeconds: 1, timeoutSeconds: 20}
      readinessProbe: {exec: {command: [cat, /tmp/ready]}, periodSeconds: 1, timeoutSeconds: 20, failureThreshold: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: failing}
spec:
  restartPolicy: Never
  initContainers:
    - {name: check, image: "` + cluster.TestImage + `", command: [sh, -c, "echo no such board; exit 3"], terminationMessagePolicy: FallbackToLogsOnError}
  containers:
    - {name: main, image: "` + cluster.TestImage + `", command: [sleep, "1000"]}
---
apiVersion: v1
kind: Pod
metadata: {name: once}
spec:
  restartPolicy: Never
  containers:
    - {name: main, image: "` + cluster.TestImage + `", command: ["true"]}
`)
	s.WaitFor("condition=Ready", "pod/frail")
	id := containerOf(t, n, "main")
	if _, err := n.Podman(t.Context(), "exec", id, "rm", "/tmp/ready"); err != nil {
		t.Fatal(err)
	}
	s.WaitFor("condition=Ready=false", "pod/frail")
	if _, err := n.Podman(t.Context(), "exec", id, "touch", "/tmp/ready"); err != nil {
		t.Fatal(err)
	}
	s.WaitFor("condition=Ready", "pod/frail")
	if _, err := n.Podman(t.Context(), "exec", id, "rm", "/tmp/ok"); err != nil {
		t.Fatal(err)
	}
	cluster.Eventually(t, 30*time.Second, func() string {
		if got := s.Must("get", "pod", "frail", "-o", "jsonpath={.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready}"); got != "1 true" {
			return "restarts and ready: " + got
		}
		return ""
	})
	events := s.Must("get", "events", "--field-selector", "involvedObject.name=frail")
	for _, want := range []string{"Container main failed liveness probe, will be restarted", "Liveness probe failed: cat: can't open '/tmp/ok': No such file or directory", "Readiness probe failed: cat:"} {
		if !strings.Contains(events, want) {
			t.Errorf("no event %q in:\n%s", want, events)
		}
	}
	s.WaitFor("jsonpath={.status.phase}=Failed", "pod/failing")
	if row := s.Must("get", "pod", "failing", "--no-headers"); !strings.Contains(row, "Init:Error") {
		t.Errorf("the failing pod's row: %s", row)
	}
	if message := s.Must("get", "pod", "failing", "-o", "jsonpath={.status.initContainerStatuses[0].state.terminated.message}"); message != "no such board\n" {
		t.Errorf("the message: %q", message)
	}
	s.WaitFor("jsonpath={.status.phase}=Succeeded", "pod/once")
	cluster.Eventually(t, 20*time.Second, func() string {
		out, err := n.Podman(t.Context(), "ps", "--format", "{{.Names}}")
		if count := strings.Count(out, "\n"); count != 2 || err != nil {
			return fmt.Sprintf("want frail's container and its infra container: %s, %v", out, err)
		}
		return ""
	})
}
