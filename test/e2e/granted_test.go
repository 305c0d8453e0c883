package e2e

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bramble.dev/bramble/test/cluster"
)

// secured says of itself what it is, what it has and what it may not do.
const secured = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: blue}
---
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {password: hush}
---
apiVersion: v1
kind: Pod
metadata: {name: secured, labels: {app: secured}}
spec:
  restartPolicy: Never
  shareProcessNamespace: true
  hostAliases: [{ip: 10.9.8.7, hostnames: [peer.example]}]
  securityContext: {runAsUser: 1000, runAsGroup: 1001, runAsNonRoot: true, fsGroup: 2000, supplementalGroups: [3000], seccompProfile: {type: RuntimeDefault}}
  volumes:
    - {name: work, emptyDir: {}}
    - {name: small, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
    - {name: conf, configMap: {name: settings, defaultMode: 0400}}
    - name: all
      projected:
        sources:
          - {secret: {name: keys}}
          - {downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}, {path: cpu, resourceFieldRef: {containerName: main, resource: limits.cpu, divisor: 1m}}]}}
  containers:
    - name: main
      image: ` + cluster.TestImage + `
      securityContext: {readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
      resources: {limits: {cpu: 250m}}
      env: [{name: ME, value: me}]
      volumeMounts:
        - {name: work, mountPath: /work}
        - {name: work, mountPath: /part, subPathExpr: of/$(ME)}
        - {name: small, mountPath: /small}
        - {name: conf, mountPath: /conf}
        - {name: conf, mountPath: /colour, subPath: colour}
        - {name: all, mountPath: /all}
      command:
        - sh
        - -c
        - |
          id -u; id -g; echo $(id -G | tr " " "\n" | sort -n)
          stat -c "%a %g" /work /small /conf/..data/colour
          cat /conf/colour /colour /all/password /all/labels /all/cpu; echo
          echo x > /part/file && cat /work/of/me/file
          touch /work/mine && stat -c "%u %g" /work/mine
          touch /nothing 2>&1
          head -c 2000000 /dev/zero 2>/dev/null > /small/big || echo full
          grep -E "^(CapEff|NoNewPrivs|Seccomp):" /proc/self/status | tr "\t" " "
          grep peer /etc/hosts | tr "\t" " "
          cat /proc/1/comm
`

const wantSecured = `1000
1001
1001 2000 3000
2777 2000
2777 2000
440 2000
blueblue` + `hushapp="secured"250
x
1000 2000
touch: /nothing: Read-only file system
full
CapEff: 0000000000000000
NoNewPrivs: 1
Seccomp: 2
10.9.8.7 peer.example
pause
`

// plain says what its simpler fields give it. It ends with a message of its own.
const plain = `
apiVersion: v1
kind: Pod
metadata: {name: plain}
spec:
  restartPolicy: Never
  activeDeadlineSeconds: 600
  os: {name: linux}
  hostname: board-7
  dnsPolicy: None
  dnsConfig: {nameservers: [192.0.2.53], searches: [shop.example], options: [{name: ndots, value: "2"}]}
  securityContext: {fsGroup: 2000, fsGroupChangePolicy: OnRootMismatch}
  volumes:
    - {name: conf, configMap: {name: settings, items: [{key: colour, path: deep/paint, mode: 0440}]}}
    - {name: keys, secret: {secretName: keys, defaultMode: 0440, items: [{key: password, path: word}]}}
    - {name: none, configMap: {name: absent, optional: true}}
    - {name: self, downwardAPI: {defaultMode: 0440, items: [{path: name, fieldRef: {fieldPath: metadata.name}}, {path: mem, mode: 0400, resourceFieldRef: {containerName: main, resource: requests.memory, divisor: 1Mi}}]}}
    - name: some
      projected:
        defaultMode: 0440
        sources:
          - {secret: {name: keys, optional: true, items: [{key: password, path: a/word, mode: 0400}]}}
          - {configMap: {name: settings, optional: true, items: [{key: colour, path: a/paint, mode: 0444}]}}
          - {downwardAPI: {items: [{path: a/name, mode: 0404, fieldRef: {fieldPath: metadata.name}}]}}
          - {secret: {name: absent, optional: true}}
    - {name: gone, secret: {secretName: absent, optional: true}}
  containers:
    - name: main
      image: ` + cluster.TestImage + `
      imagePullPolicy: IfNotPresent
      resources: {requests: {memory: 32Mi}}
      workingDir: /usr
      command: [sh, -c, "$(SCRIPT)", sh]
      args: [one, two words]
      terminationMessagePath: /tmp/last-words
      env:
        - name: SCRIPT
          value: |
            pwd; hostname; echo "$# $2"
            cat /etc/resolv.conf /conf/deep/paint /keys/word; echo
            stat -L -c %a /conf/deep/paint /keys/word
            cat /self/name /self/mem; echo
            cd /some/a; head -n 9 word paint name; echo
            stat -L -c %a /self/name /self/mem word paint name
            ls /none /gone | wc -l
            echo x 2>/dev/null > /conf/new || echo sealed
            printf done > /tmp/last-words
      volumeMounts:
        - {name: conf, mountPath: /conf, readOnly: true}
        - {name: keys, mountPath: /keys}
        - {name: none, mountPath: /none}
        - {name: gone, mountPath: /gone}
        - {name: self, mountPath: /self}
        - {name: some, mountPath: /some}
`

const wantPlain = `/usr
board-7
2 two words
search shop.example
nameserver 192.0.2.53
options ndots:2
bluehush
440
440
plain32
==> word <==
hush
==> paint <==
blue
==> name <==
plain
440
440
440
444
444
3
sealed
`

// TestAPodHasWhatItIsGranted asks pods of one node for what their security
// contexts, volumes, ports and networks give them.
func TestAPodHasWhatItIsGranted(t *testing.T) {
	t.Parallel()
	s := cluster.StartServer(t)
	n := s.StartNode(t, "shelf")
	s.Apply(secured + "---" + plain)
	for name, want := range map[string]string{"secured": wantSecured, "plain": wantPlain} {
		s.WaitFor("jsonpath={.status.phase}=Succeeded", "pod/"+name)
		if got := s.Must("logs", name); got != want {
			t.Errorf("the pod %s says\n%s\nwant\n%s", name, got, want)
		}
	}
	if got := s.Must("get", "pod", "plain", "-o", "jsonpath={.status.containerStatuses[0].state.terminated.message}"); got != "done" {
		t.Errorf("its last words are %q", got)
	}
	t.Run("at once", func(t *testing.T) {
		t.Run("hostPath", func(t *testing.T) { t.Parallel(); hostPaths(t, s, n) })
		t.Run("ports", func(t *testing.T) { t.Parallel(); ports(t, s) })
		t.Run("hooks", func(t *testing.T) { t.Parallel(); httpHooks(t, s) })
		t.Run("update", func(t *testing.T) { t.Parallel(); follows(t, s) })
	})
	t.Run("nonRoot", func(t *testing.T) {
		s.Apply(one("rootly", "securityContext: {runAsNonRoot: true}", "true", ""))
		cluster.Eventually(t, 20*time.Second, func() string {
			got := s.Must("get", "pod", "rootly", "-o", "jsonpath={.status.containerStatuses[0].state.waiting}")
			if !strings.Contains(got, "CreateContainerConfigError") || !strings.Contains(got, "container has runAsNonRoot and image will run as root") {
				return got
			}
			return ""
		})
	})
	t.Run("drain", func(t *testing.T) { drain(t, s) })
}

// one is a pod with one container.
func one(name, spec, script, ctr string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: %s}}
spec:
  terminationGracePeriodSeconds: 1
  %s
  containers:
    - name: c
      image: %s
      command: [sh, -c, %q]
      %s
`, name, name, spec, cluster.TestImage, script, ctr)
}

func hostPaths(t *testing.T, s *cluster.Server, n *cluster.Node) {
	if err := os.Symlink(n.StateDir(), filepath.Join(n.Home, "innocent")); err != nil {
		t.Fatal(err)
	}
	hosted := one("hosted", "volumes: [{name: v, hostPath: {path: "+n.Home+"/data/here, type: DirectoryOrCreate}}]", "trap exit TERM; echo kept > /v/file; sleep 1000 & wait",
		`volumeMounts: [{name: v, mountPath: /v}]
      lifecycle: {postStart: {sleep: {seconds: 1}}, preStop: {exec: {command: [sh, -c, "echo bye >> /v/file"]}}}`)
	s.Apply(strings.Replace(hosted, "Seconds: 1", "Seconds: 30", 1)) // the hook's time too
	for name, path := range map[string]string{"thief": n.Home + "/innocent", "burglar": n.Home, "caller": n.RuntimeDir + "/../" + filepath.Base(n.RuntimeDir) + "/podman/podman.sock"} {
		if name == "caller" {
			if _, err := s.Edgectl("run", name, "--image=x", "--overrides", `{"spec":{"volumes":[{"name":"v","hostPath":{"path":"/run/user/1/podman/podman.sock"}}]}}`); err == nil {
				t.Error("Podman's socket is admitted")
			}
			continue
		}
		s.Apply(one(name, "volumes: [{name: v, hostPath: {path: "+path+"}}]", "ls /v", "volumeMounts: [{name: v, mountPath: /v}]"))
		cluster.Eventually(t, 30*time.Second, func() string {
			got := s.Must("get", "events", "--field-selector", "involvedObject.name="+name+",reason=FailedMount", "-o", "jsonpath={.items[*].message}")
			if !strings.Contains(got, "is not allowed: it would give the container "+n.Home) {
				return "the events say " + got
			}
			return ""
		})
	}
	s.Apply(one("typed", "volumes: [{name: v, hostPath: {path: /etc/passwd, type: Directory}}]", "ls /v", "volumeMounts: [{name: v, mountPath: /v}]"))
	cluster.Eventually(t, 30*time.Second, func() string {
		got := s.Must("get", "events", "--field-selector", "involvedObject.name=typed,reason=FailedMount", "-o", "jsonpath={.items[*].message}")
		if !strings.Contains(got, "hostPath type check failed: /etc/passwd is not a directory") {
			return "the events say " + got
		}
		return ""
	})
	s.WaitFor("condition=Ready", "pod/hosted")
	s.Must("delete", "pod", "hosted", "thief", "burglar", "typed")
	if data, err := os.ReadFile(filepath.Join(n.Home, "data/here/file")); err != nil || string(data) != "kept\nbye\n" {
		t.Errorf("the node's file has %q, %v", data, err)
	}
}

func ports(t *testing.T, s *cluster.Server) {
	stranger, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	taken := stranger.Addr().(*net.TCPAddr).Port
	tcp, own := freePort(t), freePort(t)
	s.Apply(one("porter", "enableServiceLinks: true", "mkdir /w; echo hello > /w/x; exec httpd -f -p 8080 -h /w",
		fmt.Sprintf("ports: [{containerPort: 8080, hostPort: %d, hostIP: 127.0.0.1}]", tcp)))
	s.Apply(one("homely", "hostNetwork: true", fmt.Sprintf("mkdir /w; echo host > /w/x; exec httpd -f -p 127.0.0.1:%d -h /w", own), fmt.Sprintf("ports: [{containerPort: %d}]", own)))
	s.Apply(one("late", "enableServiceLinks: true", "sleep 1000", fmt.Sprintf("ports: [{containerPort: 1, hostPort: %d, hostIP: 127.0.0.1}]", taken)))
	s.WaitFor("condition=Ready", "pod/porter", "pod/homely")
	// The scheduler gives nobody a port that a pod has, and a node does not either.
	same := fmt.Sprintf("ports: [{containerPort: 8080, hostPort: %d, hostIP: 127.0.0.1}]", tcp)
	s.Apply(one("twin", "enableServiceLinks: true", "sleep 1000", same) + "---" + one("squatter", "nodeName: shelf", "sleep 1000", same))
	refusedPort(t, s, "squatter")
	cluster.Eventually(t, 20*time.Second, func() string {
		got := s.Must("get", "pod", "twin", "-o", "jsonpath={.spec.nodeName}{.status.conditions[0].reason}: {.status.conditions[0].message}")
		if want := fmt.Sprintf("Unschedulable: 0/1 nodes fit: 1 had host port %d/TCP taken", tcp); !strings.Contains(got, want) {
			return fmt.Sprintf("the twin's condition is %q, want %q", got, want)
		}
		return ""
	})
	answers(t, map[int]string{tcp: "hello\n", own: "host\n"})
	if got := s.Must("get", "pods", "porter", "homely", "-o", "jsonpath={.items[*].status.containerStatuses[0].restartCount}"); got != "0 0" {
		t.Errorf("the pods that had their ports were restarted %s times", got)
	}
	host, ip, _ := strings.Cut(s.Must("get", "pod", "homely", "-o", "jsonpath={.status.hostIP} {.status.podIP}"), " ")
	if host == "" || host != ip {
		t.Errorf("a pod in the node's network has address %q, its node %q", ip, host)
	}
	refusedPort(t, s, "late")
	_ = stranger.Close()
	s.WaitFor("condition=Ready", "pod/late")
	s.Must("delete", "pod", "squatter", "porter", "homely", "late")
	s.WaitFor("condition=Ready", "pod/twin")
	s.Must("delete", "pod", "twin")
	if l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", tcp)); err != nil {
		t.Errorf("the port is not given back: %v", err)
	} else {
		_ = l.Close()
	}
}

// answers asks servers on ports of this machine.
func answers(t *testing.T, wants map[int]string) {
	t.Helper()
	for port, want := range wants {
		cluster.Eventually(t, 20*time.Second, func() string {
			response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/x", port))
			if err != nil {
				return err.Error()
			}
			defer response.Body.Close()
			if data, _ := io.ReadAll(response.Body); string(data) != want {
				return fmt.Sprintf("the port answers %q, want %q", data, want)
			}
			return ""
		})
	}
}

// refusedPort waits until a pod's events say that its host port is taken.
func refusedPort(t *testing.T, s *cluster.Server, pod string) {
	t.Helper()
	cluster.Eventually(t, 20*time.Second, func() string {
		got := s.Must("get", "events", "--field-selector", "involvedObject.name="+pod+",reason=HostPortConflict", "-o", "jsonpath={.items[*].message}")
		if !strings.Contains(got, "is in use on this node by another pod or program") {
			return "the events say " + got
		}
		return ""
	})
}

// httpHooks are requests to a server on the node.
func httpHooks(t *testing.T, s *cluster.Server) {
	heard := make(chan string, 10)
	hooked := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { heard <- r.URL.Path }))
	defer hooked.Close()
	_, port, _ := net.SplitHostPort(hooked.Listener.Addr().String())
	s.Apply(one("hooked", "enableServiceLinks: true", "sleep 1000", fmt.Sprintf(
		"lifecycle: {postStart: {httpGet: {host: 127.0.0.1, port: %s, path: /started}}, preStop: {httpGet: {host: 127.0.0.1, port: %[1]s, path: /stopping}}}", port)))
	s.WaitFor("condition=Ready", "pod/hooked")
	s.Must("delete", "pod", "hooked")
	close(heard)
	var all []string
	for path := range heard {
		all = append(all, path)
	}
	if !slices.Equal(all, []string{"/started", "/stopping"}) {
		t.Errorf("the hooks asked for %v", all)
	}
}

// follows changes what a running pod's volumes are made from.
func follows(t *testing.T, s *cluster.Server) {
	s.Apply(one("watcher", "volumes: [{name: v, projected: {sources: [{configMap: {name: settings}}, {downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}]}}]",
		"while :; do cat /v/colour /part /v/labels; echo; sleep 0.3; done", "volumeMounts: [{name: v, mountPath: /v}, {name: v, mountPath: /part, subPath: colour}]"))
	s.WaitFor("condition=Ready", "pod/watcher")
	s.Must("patch", "configmap", "settings", "-p", `{"data":{"colour":"green"}}`)
	s.Must("label", "pod", "watcher", "seen=yes")
	cluster.Eventually(t, 20*time.Second, func() string {
		got := s.Must("logs", "watcher", "--tail=3")
		if !strings.Contains(got, "greenblueapp=\"watcher\"\nseen=\"yes\"") {
			return got
		}
		return ""
	})
	s.Must("delete", "configmap", "settings")
	s.Must("label", "pod", "watcher", "seen=again", "--overwrite")
	cluster.Eventually(t, 20*time.Second, func() string {
		got := s.Must("logs", "watcher", "--tail=3")
		if !strings.Contains(got, "greenblueapp=") {
			return got
		}
		return ""
	})
	if got := s.Must("get", "pod", "watcher", "-o", "jsonpath={.status.phase} {.status.containerStatuses[0].restartCount}"); got != "Running 0" {
		t.Errorf("without its ConfigMap the pod is %s", got)
	}
}

// drain empties the node with every kubectl.
func drain(t *testing.T, s *cluster.Server) {
	programs := kubectls(t)
	versions := slices.Sorted(maps.Keys(programs))
	oldest, newest := versions[0], versions[len(versions)-1]
	s.Apply(one("evicted", "enableServiceLinks: true", "sleep 1000", ""))
	s.WaitFor("condition=Ready", "pod/evicted")
	out, err := s.Edgectl("drain", "shelf", "--dry-run=server", "--force", "--delete-emptydir-data")
	if err != nil || !strings.Contains(out, "evicted (server dry run)") {
		t.Errorf("a dry run says %v\n%s", err, out)
	}
	if got := s.Must("get", "pod", "evicted", "-o", "jsonpath={.metadata.deletionTimestamp}"); got != "" {
		t.Error("a dry run evicts")
	}
	for version, program := range programs {
		if version != oldest && version != newest {
			continue
		}
		s.Apply(one("evicted", "enableServiceLinks: true", "sleep 1000", ""))
		s.WaitFor("condition=Ready", "pod/evicted")
		out, err := s.Kubectl(program, "", "drain", "shelf", "--force", "--delete-emptydir-data", "--timeout=60s")
		if err != nil || !strings.Contains(out, "drained") {
			t.Errorf("%s: %v\n%s", version, err, out)
		}
		if _, err := s.Edgectl("get", "pod", "evicted"); err == nil {
			t.Errorf("%s: the pod is still there", version)
		}
		if out, err := s.Kubectl(program, "", "uncordon", "shelf"); err != nil {
			t.Errorf("%s: %v\n%s", version, err, out)
		}
		if got := s.Must("get", "node", "shelf", "-o", "jsonpath={.spec.unschedulable}"); got != "" {
			t.Errorf("%s: unschedulable is %s", version, got)
		}
	}
}

// freePort is a port that nobody had a moment ago.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
