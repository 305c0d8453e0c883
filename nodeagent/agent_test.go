package nodeagent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bramble.dev/bramble/test/cluster"
)

// manifest is a pod bound to the node, of one container.
func manifest(name, extra, command string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  nodeName: shelf
  terminationGracePeriodSeconds: 1
  %s
  containers:
    - name: main
      image: %s
      command: [sh, -c, %q]
`, name, extra, cluster.TestImage, command)
}

const web = "echo serving; mkdir -p /www; echo a page > /www/index.html; exec httpd -f -p 8080 -h /www"

func field(s *cluster.Server, pod, path string) string {
	out, err := s.Edgectl("get", "pod", pod, "--ignore-not-found", "-o", "jsonpath={"+path+"}")
	if err != nil {
		return err.Error()
	}
	return out
}

// become waits until a field of a pod has a value.
func become(t *testing.T, s *cluster.Server, pod, path, want string) {
	t.Helper()
	cluster.Eventually(t, time.Minute, func() string {
		if got := field(s, pod, path); !strings.Contains(got, want) {
			return fmt.Sprintf("%s of pod %s is %q, want %q", path, pod, got, want)
		}
		return ""
	})
}

// fetch gets a page of a pod from inside a container of the node.
func fetch(t *testing.T, n *cluster.Node, ip string) (string, error) {
	t.Helper()
	names, err := n.Podman(t.Context(), "ps", "--filter", "label=edge.bramble.dev/container", "--format", "{{.Names}}")
	name, _, _ := strings.Cut(names, "\n")
	if err != nil || name == "" {
		return "", fmt.Errorf("no container runs: %w", err)
	}
	return n.Podman(t.Context(), "exec", name, "wget", "-q", "-O", "-", "http://"+ip+":8080/")
}

// leftovers says what there is on the node of any pod.
func leftovers(t *testing.T, n *cluster.Node) string {
	t.Helper()
	out, err := n.Podman(t.Context(), "ps", "-a", "--format", "{{.Names}}")
	if err != nil {
		t.Fatal(err)
	}
	names, _ := os.ReadDir(filepath.Join(n.RuntimeDir, "bramble", "netns"))
	for _, e := range names {
		if e.Name() != "node" {
			out += "network " + e.Name() + "\n"
		}
	}
	for _, dir := range []string{filepath.Join(n.StateDir(), "pods"), filepath.Join(n.RuntimeDir, "bramble", "pods"),
		filepath.Join(n.StateDir(), "volumes"), filepath.Join(n.RuntimeDir, "bramble", "volumes"), filepath.Join(n.StateDir(), "termination")} {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			out += filepath.Join(dir, e.Name()) + "\n"
		}
	}
	return out
}

func TestLifeOfPods(t *testing.T) {
	s := cluster.StartServer(t)
	n := s.StartNode(t, "shelf")
	s.Apply(manifest("web", "", web))
	s.WaitFor("condition=Ready", "pod/web")
	if page, err := s.Edgectl("get", "--raw", "/api/v1/namespaces/default/pods/web:8080/proxy/"); page != "a page\n" {
		t.Errorf("the page by the server's proxy is %q, %v", page, err)
	}
	cluster.Eventually(t, 10*time.Second, func() string {
		if out, err := s.Edgectl("logs", "web"); out != "serving\n" || err != nil {
			return fmt.Sprintf("the log is %q, %v", out, err)
		}
		return ""
	})

	s.Apply(manifest("failing", "", "echo here; exit 3"))
	become(t, s, "failing", ".status.containerStatuses[0].state.waiting.reason", "CrashLoopBackOff")
	if out, err := s.Edgectl("logs", "--previous", "failing"); out != "here\n" || err != nil {
		t.Errorf("the log of the last run is %q, %v", out, err)
	}
	if code := field(s, "failing", ".status.containerStatuses[0].lastState.terminated.exitCode"); code != "3" {
		t.Errorf("the exit code is %q", code)
	}
	s.Apply(manifest("once", "restartPolicy: Never", "exit 0"))
	become(t, s, "once", ".status.phase", "Succeeded")
	s.Apply(strings.Replace(manifest("nowhere", "", "x"), cluster.TestImage, "localhost/nosuch:1", 1))
	become(t, s, "nowhere", ".status.containerStatuses[0].state.waiting.reason", "ImagePullBackOff")

	plant(t, n)
	for _, victim := range []string{"agent", "podman"} {
		killService(t, n, victim)
		id := field(s, "web", ".status.containerStatuses[0].containerID")
		name := "after-" + victim
		s.Apply(manifest(name, "", web))
		s.WaitFor("condition=Ready", "pod/"+name)
		if again := field(s, "web", ".status.containerStatuses[0].containerID"); again != id || field(s, "web", ".status.containerStatuses[0].restartCount") != "0" {
			t.Errorf("after the end of %s the pod was started again", victim)
		}
	}
	s.Must("delete", "pods", "--all", "--wait=true", "--timeout=60s")
	cluster.Eventually(t, 20*time.Second, func() string {
		if left := leftovers(t, n); left != "" {
			return "left on the node: " + left
		}
		return ""
	})
}

// plant leaves what a pod whose record was lost would leave, without containers:
// a network that is gone stale, and a directory.
func plant(t *testing.T, n *cluster.Node) {
	t.Helper()
	const script = `lost=0b5e7f3c-0000-4000-8000-000000000000
		touch "$XDG_RUNTIME_DIR/bramble/netns/$lost"
		mkdir -p "$XDG_RUNTIME_DIR/bramble/pods/$lost" "$1/volumes/$lost"`
	if out, err := n.Command(t.Context(), "sh", "-ec", script, "sh", n.StateDir()).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// killService kills the agent, or Podman's service, and starts the agent again.
func killService(t *testing.T, n *cluster.Node, what string) {
	t.Helper()
	if what == "agent" {
		n.Process.Kill()
		n.Start()
		return
	}
	pids, err := n.Processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.HasPrefix(string(line), "podman\x00system\x00service") {
			p, err := os.FindProcess(pid)
			if err != nil {
				t.Fatal(err)
			}
			_ = p.Kill()
		}
	}
}

func TestColdStart(t *testing.T) {
	s := cluster.StartServer(t)
	n := s.StartNode(t, "shelf")
	for i := range 3 {
		s.Apply(manifest(fmt.Sprintf("web-%d", i), "", web))
	}
	s.WaitFor("condition=Ready", "pods", "--all")
	addresses := func() string {
		return s.Must("get", "pods", "-o", `jsonpath={range .items[*]}{.metadata.name} {.status.podIP}{"\n"}{end}`)
	}
	before := addresses()
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
	for line := range strings.Lines(before) {
		ip := strings.Fields(line)[1]
		cluster.Eventually(t, time.Minute, func() string {
			if page, err := fetch(t, n, ip); page != "a page\n" {
				return fmt.Sprintf("the page of %s is %q, %v", ip, page, err)
			}
			return ""
		})
	}
	t.Logf("three pods serve %v after the power came back", time.Since(began))
	s.Start()
	s.WaitFor("condition=Ready", "node/shelf")
	s.WaitFor("condition=Ready", "pods", "--all")
	if diff := cmp.Diff(before, addresses()); diff != "" {
		t.Errorf("addresses (-before +after):\n%s", diff)
	}
}

// TestFindingsAreTheNodesConditions: the agent tells of what is wrong with its board, and
// of nothing by two names.
func TestFindingsAreTheNodesConditions(t *testing.T) {
	u := cluster.ForTest(t)
	board := filepath.Join(u.Home, "board")
	for path, text := range map[string]string{
		"proc/self/mountinfo":                   "1 0 179:2 / / rw shared:1 - ext4 /dev/mmcblk0p2 rw\n",
		"sys/fs/ext4/mmcblk0p2/errors_count":    "3\n",
		"proc/sys/kernel/random/boot_id":        "board\n",
		"proc/cgroups":                          "memory\t0\t1\t0\n",
		"sys/fs/cgroup/cgroup.controllers":      "cpu pids\n",
		"sys/class/thermal/thermal_zone0/type":  "cpu-thermal\n",
		"sys/class/thermal/thermal_zone0/temp":  "40000\n",
		"sys/block/mmcblk0/device/life_time":    "0x0b 0x01\n",
		"sys/block/mmcblk0/device/pre_eol_info": "0x01\n",
		"sys/block/mmcblk0/device/type":         "MMC\n",
	} {
		path = filepath.Join(board, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := cluster.StartServer(t)
	n := s.StartNodeAs(t, "shelf", u, "--hw-root="+board)
	s.WaitFor("condition=FilesystemErrors", "node/shelf")
	s.WaitFor("condition=StorageWorn", "node/shelf")
	conditions := s.Must("get", "node", "shelf", "-o", `jsonpath={range .status.conditions[*]}{.type} {.reason} {.message}{"\n"}{end}`)
	for _, want := range []string{"FilesystemErrors DoctorFinds ext4 counted errors", "/ (/dev/mmcblk0p2) 3", "StorageWorn LifeUsed", "ResourceLimitsUnenforced NoCgroupDelegation"} {
		if !strings.Contains(conditions, want) {
			t.Errorf("no %q:\n%s", want, conditions)
		}
	}
	seen := map[string]bool{}
	for line := range strings.Lines(conditions) {
		name, _, _ := strings.Cut(line, " ")
		if seen[name] || name == "MemoryCgroupOff" || name == "CgroupsNotUnified" {
			t.Errorf("%s says again what is said:\n%s", name, conditions)
		}
		seen[name] = true
	}
	out, err := n.Command(t.Context(), filepath.Join(cluster.Programs(t), "bramble-agent"), "doctor", "--state-dir", n.StateDir()).Output()
	for _, want := range []string{"  the server is reached: " + s.NodeAddress, "  Podman's API is served on " + n.PodmanSocket()} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("no %q, %v:\n%s", want, err, out)
		}
	}
}
