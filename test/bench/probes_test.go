package bench

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bramble.dev/bramble/test/cluster"
)

// TestProbes starts 20 pods with a probe every ten seconds, by HTTP and then by
// commands, and lets them rest for a minute: what the probes use of the
// processor and, where the runtime directory is in memory, that nothing is written.
func TestProbes(t *testing.T) {
	for kind, probe := range map[string]string{
		"HTTP": "httpGet: {port: 8080, path: /passwd}", "command": "exec: {command: [cat, /etc/passwd]}",
	} {
		t.Run(kind, func(t *testing.T) {
			const pods = 20
			s := cluster.StartServer(t)
			n := s.StartNode(t, "bench")
			for i := range pods {
				s.Apply(fmt.Sprintf(probedPod, i, probe))
			}
			s.WaitFor("condition=Ready", "pods", "--all")
			rest(t, 5*time.Second)
			const length = time.Minute
			names := []string{"bramble-agent", "bramble-network", "podman system service"}
			pids, before := map[string]int{}, map[string]usage{}
			for _, name := range names {
				found, err := n.Running(name)
				if err != nil || len(found) == 0 {
					t.Fatalf("%s: %v, %v", name, found, err)
				}
				pids[name], before[name] = found[0], read(t, found[0])
			}
			rest(t, length)
			for _, name := range names {
				now := read(t, pids[name])
				percent := func(d time.Duration) float64 { return 100 * float64(d) / float64(length) }
				figure(t, fmt.Sprintf("%s, processor with 20 %s probes every 10 s", name, kind), percent(now.cpu-before[name].cpu), 0, "%")
				if name == "bramble-agent" {
					figure(t, fmt.Sprintf("the OCI runtime, processor with 20 %s probes every 10 s", kind), percent(now.children-before[name].children), 0, "%")
					figure(t, fmt.Sprintf("%s, resident with 20 %s probes", name, kind), now.rssMiB, 24, "MiB")
				}
				written := now.writtenKB - before[name].writtenKB
				figure(t, fmt.Sprintf("%s, written in a minute with 20 %s probes", name, kind), written, 0, "kB")
				if written > 0 && inMemory(t, n.RuntimeDir) {
					t.Errorf("%s wrote %.1f kB in %v: a probe touches no disk", name, written, length)
				}
			}
		})
	}
}

// inMemory reports whether a directory is on a tmpfs, as XDG_RUNTIME_DIR is on an
// ordinary machine: what is written there is on no disk.
func inMemory(t *testing.T, dir string) bool {
	t.Helper()
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	return fs.Type == unix.TMPFS_MAGIC
}

const probedPod = `
apiVersion: v1
kind: Pod
metadata: {name: probed-%d}
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - name: c
      image: ` + cluster.TestImage + `
      command: [httpd, -f, -p, "8080", -h, /etc]
      livenessProbe: {periodSeconds: 10, timeoutSeconds: 5, %s}
`
