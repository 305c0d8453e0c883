package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"bramble.dev/bramble/test/cluster"
)

const streamed = `
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: web
      image: ` + cluster.TestImage + `
      command: [httpd, -f, -p, "8080", -h, /www]
---
apiVersion: v1
kind: Pod
metadata: {name: shell}
spec:
  terminationGracePeriodSeconds: 1
  restartPolicy: Never
  containers: [{name: main, image: "` + cluster.TestImage + `", command: [sh], stdin: true, stdinOnce: true, tty: true}]
---
apiVersion: v1
kind: Pod
metadata: {name: once}
spec:
  restartPolicy: Never
  containers: [{name: main, image: "` + cluster.TestImage + `", command: [sh, -c, "cat; echo over >&2; sleep 0.5"], stdin: true, stdinOnce: true}]
---
apiVersion: v1
kind: Pod
metadata: {name: open}
spec:
  terminationGracePeriodSeconds: 1
  restartPolicy: Never
  containers: [{name: main, image: "` + cluster.TestImage + `", command: [sh, -c, "while read line; do echo got $line; done; echo ended"], stdin: true}]
`

// TestStreams uses exec, attach and port-forward as a program does, by both
// protocols.
func TestStreams(t *testing.T) {
	t.Parallel()
	s := cluster.StartServer(t)
	n := s.StartNode(t, "shelf")
	s.Apply(streamed)
	s.WaitFor("condition=Ready", "pod/web", "pod/shell", "pod/once", "pod/open")
	for name, dial := range map[string]func(*rest.Config, string, *http.Request) (remotecommand.Executor, error){
		"spdy": func(c *rest.Config, _ string, r *http.Request) (remotecommand.Executor, error) {
			return remotecommand.NewSPDYExecutor(c, "POST", r.URL)
		},
		"websocket": func(c *rest.Config, _ string, r *http.Request) (remotecommand.Executor, error) {
			return remotecommand.NewWebSocketExecutor(c, "GET", r.URL.String())
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &streamer{t: t, commands: map[string]int{"spdy": 10, "websocket": 50}[name], s: s, dial: dial}
			c.carriesMuch()
			c.manyAtOnce()
			c.resizes()
			c.isSlow(n)
		})
	}
	t.Run("gone", func(t *testing.T) { goesAway(t, s, n) })
	t.Run("attach", func(t *testing.T) { attaches(t, s) })
	t.Run("portforward", func(t *testing.T) { forwards(t, s) })
	t.Run("loss", func(t *testing.T) { losesTheNode(t, s, n) })
}

type streamer struct {
	t        *testing.T
	commands int // at once
	s        *cluster.Server
	dial     func(*rest.Config, string, *http.Request) (remotecommand.Executor, error)
}

// run runs a command in pod web.
func (c *streamer) run(ctx context.Context, o remotecommand.StreamOptions, command ...string) error {
	request := c.s.Client().CoreV1().RESTClient().Post().Namespace("default").Resource("pods").Name("web").SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Command: command, Stdin: o.Stdin != nil, Stdout: o.Stdout != nil, Stderr: o.Stderr != nil, TTY: o.Tty,
		}, scheme.ParameterCodec)
	executor, err := c.dial(c.s.Config(), "", &http.Request{URL: request.URL()})
	if err != nil {
		return err
	}
	return executor.StreamWithContext(ctx, o)
}

// carriesMuch sends 10 MB there and back.
func (c *streamer) carriesMuch() {
	data := make([]byte, 10<<20)
	_, _ = rand.Read(data)
	var out, errs bytes.Buffer
	began := time.Now()
	if err := c.run(c.t.Context(), remotecommand.StreamOptions{Stdin: bytes.NewReader(data), Stdout: &out, Stderr: &errs}, "cat"); err != nil {
		c.t.Errorf("10 MB: %v", err)
	}
	c.t.Logf("10 MB both ways took %v", time.Since(began))
	if !bytes.Equal(out.Bytes(), data) || errs.Len() != 0 {
		c.t.Errorf("10 MB came back as %d bytes, with %q", out.Len(), errs.String())
	}
}

// manyAtOnce runs commands side by side, each with a code of its own.
func (c *streamer) manyAtOnce() {
	began := time.Now()
	var group sync.WaitGroup
	for i := range c.commands {
		group.Go(func() {
			var out bytes.Buffer
			err := c.run(c.t.Context(), remotecommand.StreamOptions{Stdout: &out, Stderr: io.Discard}, "sh", "-c", fmt.Sprintf("echo %d; exit %d", i, i))
			code := 0
			var exit interface{ ExitStatus() int }
			if errors.As(err, &exit) {
				code = exit.ExitStatus()
			} else if err != nil {
				c.t.Errorf("command %d: %v", i, err)
			}
			if out.String() != fmt.Sprintln(i) || code != i {
				c.t.Errorf("command %d: %q, code %d", i, out.String(), code)
			}
		})
	}
	group.Wait()
	c.t.Logf("%d commands took %v", c.commands, time.Since(began))
}

// sizes is a window that changes once.
type sizes chan remotecommand.TerminalSize

func (s sizes) Next() *remotecommand.TerminalSize {
	size, more := <-s
	if !more {
		return nil
	}
	return &size
}

// resizes lets a program see its window, and its change.
func (c *streamer) resizes() {
	window := make(sizes, 2)
	window <- remotecommand.TerminalSize{Width: 100, Height: 30}
	out := &expected{want: "30 100", seen: make(chan struct{})}
	keys, typed := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- c.run(c.t.Context(), remotecommand.StreamOptions{Stdin: keys, Stdout: out, Tty: true, TerminalSizeQueue: window},
			"sh", "-c", `trap "stty size" WINCH; stty size; while :; do read -t 1 line; [ "$line" = q ] && exit 3; done`)
	}()
	out.wait(c.t, done)
	out.next("40 120")
	window <- remotecommand.TerminalSize{Width: 120, Height: 40}
	out.wait(c.t, done)
	if _, err := io.WriteString(typed, "q\n"); err != nil {
		c.t.Error(err)
	}
	var exit interface{ ExitStatus() int }
	if err := <-done; !errors.As(err, &exit) || exit.ExitStatus() != 3 {
		c.t.Errorf("the terminal's program ended with %v, want code 3", err)
	}
	close(window)
	_ = typed.Close()
}

// expected is output in which something is waited for.
type expected struct {
	mu   sync.Mutex // protects what follows
	got  bytes.Buffer
	want string
	seen chan struct{}
}

func (e *expected) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.got.Write(p)
	if e.want != "" && strings.Contains(e.got.String(), e.want) {
		e.want = ""
		close(e.seen)
	}
	return len(p), nil
}

func (e *expected) next(want string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.want, e.seen = want, make(chan struct{})
	e.got.Reset()
}

func (e *expected) wait(t *testing.T, ended <-chan error) {
	t.Helper()
	e.mu.Lock()
	seen := e.seen
	e.mu.Unlock()
	select {
	case <-seen:
	case err := <-ended:
		t.Fatalf("it ended with %v, having said %q", err, e.got.String())
	case <-time.After(20 * time.Second):
		t.Fatalf("%q does not come, only %q", e.want, e.got.String())
	}
}

// goesAway kills clients of both protocols, whose commands must end.
func goesAway(t *testing.T, s *cluster.Server, n *cluster.Node) {
	for version, program := range kubectls(t) {
		if !strings.HasPrefix(version, "v1.27.") && !strings.HasPrefix(version, "v1.37.") {
			continue
		}
		cmd := exec.CommandContext(t.Context(), program, "exec", "web", "--", "sh", "-c", "echo up; sleep 7654; true")
		cmd.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig)
		out := &expected{want: "up", seen: make(chan struct{})}
		cmd.Stdout = out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		out.wait(t, nil)
		cluster.Eventually(t, 20*time.Second, func() string {
			if count(t, n, "sleep\x007654") == 0 {
				return "the command does not run"
			}
			return ""
		})
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		cluster.Eventually(t, 20*time.Second, func() string {
			if left := count(t, n, "sleep\x007654"); left > 0 {
				return fmt.Sprintf("%s: %d processes of a client that is gone", version, left)
			}
			return ""
		})
	}
}

// isSlow takes nothing of a flood for a while, and then goes: neither server nor
// agent holds it in memory, and the command ends with its client.
func (c *streamer) isSlow(n *cluster.Node) {
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	before := rss(c.t, n.PID()) + rss(c.t, c.s.PID())
	reader, writer := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- c.run(ctx, remotecommand.StreamOptions{Stdout: writer}, "cat", "/dev/zero") }()
	if _, err := io.ReadFull(reader, make([]byte, 1<<20)); err != nil {
		c.t.Fatal(err)
	}
	timer := time.NewTimer(2 * time.Second)
	<-timer.C
	grown := rss(c.t, n.PID()) + rss(c.t, c.s.PID()) - before
	c.t.Logf("server and agent grew by %d kB for a slow client", grown>>10)
	if grown > 16<<20 {
		c.t.Errorf("server and agent grew by %d bytes", grown)
	}
	cancel()
	_ = reader.Close()
	<-done
	cluster.Eventually(c.t, 10*time.Second, func() string {
		if count(c.t, n, "cat\x00/dev/zero") > 0 {
			return "the flood goes on without its client"
		}
		return ""
	})
}

// count counts the node's processes whose command line begins with part.
func count(t *testing.T, n *cluster.Node, part string) (found int) {
	t.Helper()
	pids, err := n.Processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.HasPrefix(string(data), part) {
			found++
		}
	}
	return found
}

// rss is a process's resident memory in bytes.
func rss(t *testing.T, pid int) int64 {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	var total, resident int64
	if _, err := fmt.Sscan(string(data), &total, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * int64(os.Getpagesize())
}

// attaches talks to containers' own input: one with a terminal, one whose input
// ends with its first client's, one whose input stays open.
func attaches(t *testing.T, s *cluster.Server) {
	program := filepath.Join(cluster.Programs(t), "kubectl")
	out, err := s.Kubectl(program, "hello\n", "attach", "-i", "once")
	if !strings.Contains(out, "hello") || err != nil {
		t.Errorf("attach to once: %q, %v", out, err)
	}
	s.WaitFor("jsonpath={.status.phase}=Succeeded", "pod/once")
	out, err = s.Kubectl(program, "echo $((6*7))\nexit\n", "attach", "-i", "shell")
	if !strings.Contains(out, "42") || err != nil {
		t.Errorf("attach to shell: %q, %v", out, err)
	}
	s.WaitFor("jsonpath={.status.phase}=Succeeded", "pod/shell")
	for _, word := range []string{"first", "second"} {
		ctx, cancel := context.WithCancel(t.Context())
		cmd := exec.CommandContext(ctx, program, "attach", "-i", "open")
		cmd.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig)
		cmd.Stdin = strings.NewReader(word + "\n")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cluster.Eventually(t, 10*time.Second, func() string {
			if logs := s.Must("logs", "open"); !strings.Contains(logs, "got "+word+"\n") {
				return "the container says " + logs
			}
			return ""
		})
		cancel()
		_ = cmd.Wait()
	}
	if logs := s.Must("logs", "open"); strings.Contains(logs, "ended") {
		t.Errorf("the input of a container without stdinOnce was ended: %s", logs)
	}
	if _, err := s.Edgectl("attach", "once"); err == nil || !strings.Contains(err.Error(), "completed pod") {
		t.Errorf("attach to a pod that is over: %v", err)
	}
}

// forwards sends many connections through one port-forward, of the oldest and
// the newest kubectl.
func forwards(t *testing.T, s *cluster.Server) {
	for version, program := range kubectls(t) {
		if !strings.HasPrefix(version, "v1.27.") && !strings.HasPrefix(version, "v1.37.") {
			continue
		}
		ctx, cancel := context.WithCancel(t.Context())
		cmd := exec.CommandContext(ctx, program, "port-forward", "pod/web", ":8080", ":9")
		cmd.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig)
		said := &expected{want: "-> 9", seen: make(chan struct{})}
		cmd.Stdout, cmd.Stderr = said, said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said.wait(t, nil)
		var ports []string
		for line := range strings.Lines(said.got.String()) {
			if rest, found := strings.CutPrefix(line, "Forwarding from 127.0.0.1:"); found {
				ports = append(ports, strings.Fields(rest)[0])
			}
		}
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				conn, err := net.Dial("tcp", "127.0.0.1:"+ports[0])
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				if _, err := io.WriteString(conn, "GET /none HTTP/1.0\r\n\r\n"); err != nil {
					t.Error(err)
				}
				_ = conn.(*net.TCPConn).CloseWrite()
				answer, err := io.ReadAll(conn)
				if !bytes.HasPrefix(answer, []byte("HTTP/1.")) || err != nil {
					t.Errorf("%s: %q, %v", version, answer, err)
				}
			})
		}
		group.Wait()
		said.next("connection refused")
		if conn, err := net.Dial("tcp", "127.0.0.1:"+ports[1]); err == nil {
			_, _ = io.ReadAll(conn)
			_ = conn.Close()
		}
		said.wait(t, nil)
		cancel()
		_ = cmd.Wait()
	}
}

// losesTheNode holds that a client hears of it when the pod is deleted, or the
// node's agent goes.
func losesTheNode(t *testing.T, s *cluster.Server, n *cluster.Node) {
	program := filepath.Join(cluster.Programs(t), "kubectl")
	start := func(until string, args ...string) (*exec.Cmd, *expected, chan error) {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig)
		said := &expected{want: until, seen: make(chan struct{})}
		cmd.Stdout, cmd.Stderr = said, said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		said.wait(t, done)
		return cmd, said, done
	}
	ends := func(what string, said *expected, done chan error) {
		t.Helper()
		select {
		case err := <-done:
			if said.mu.Lock(); err == nil || !strings.Contains(said.got.String(), "error") && !strings.Contains(said.got.String(), "command terminated") {
				t.Errorf("%s: %v, %q", what, err, said.got.String())
			}
			t.Logf("%s: %q", what, said.got.String())
			said.mu.Unlock()
		case <-time.After(20 * time.Second):
			t.Errorf("%s: the client goes on", what)
		}
	}
	_, running, ran := start("up", "exec", "web", "--", "sh", "-c", "echo up; sleep 100")
	n.Process.Kill()
	ends("exec, when the agent is killed", running, ran)
	n.Start()
	s.WaitFor("condition=Ready", "node/shelf")
	cluster.Eventually(t, 20*time.Second, func() string {
		if _, err := s.Edgectl("exec", "web", "--", "true"); err != nil {
			return err.Error()
		}
		return ""
	})
	_, running, ran = start("up", "exec", "web", "--", "sh", "-c", "echo up; sleep 100")
	_, forwarding, forwarded := start("Forwarding", "port-forward", "pod/web", ":8080")
	s.Must("delete", "pod", "web", "--wait=false")
	ends("exec, when its pod is deleted", running, ran)
	ends("port-forward, when its pod is deleted", forwarding, forwarded)
}
