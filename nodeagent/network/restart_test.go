package network_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bramble.dev/bramble/nodeagent/network/netapi"
	"bramble.dev/bramble/nodeagent/network/userns"
	"bramble.dev/bramble/test/cluster"
)

// line is a long-lived connection, made by busybox in a pod, that echoes.
type line struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func (b *bed) connect(from, addr, port string) *line {
	b.t.Helper()
	l := &line{cmd: b.podCmd(from, "busybox", "nc", addr, port)}
	in, err := l.cmd.StdinPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	l.in, l.out = in, bufio.NewReader(out)
	if err := l.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _, _ = l.cmd.Process.Kill(), l.cmd.Wait() })
	return l
}

// echoes tells whether the far end still answers on the same connection.
func (l *line) echoes(word string) error {
	if _, err := fmt.Fprintln(l.in, word); err != nil {
		return err
	}
	got, err := l.out.ReadString('\n')
	if err == nil && strings.TrimSpace(got) != word {
		err = fmt.Errorf("got %q", got)
	}
	return err
}

func echo(c net.Conn) { _, _ = io.Copy(c, c); _ = c.Close() }

// echoIn runs an echo server in a pod.
func (b *bed) echoIn(path, port string) {
	b.t.Helper()
	cmd := b.podCmd(path, "busybox", "nc", "-ll", "-p", port, "-e", "/bin/cat")
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	b.eventually("the pod listens", 5*time.Second, func() bool {
		out, _ := b.inPod(path, "cat", "/proc/net/tcp", "/proc/net/tcp6")
		return strings.Contains(out, " 0A ")
	})
}

func TestConnectionsOutliveTheProcess(t *testing.T) {
	b := newBed(t)
	b.start()
	b.putNode("slirp4netns")
	one, two := b.putPod("one", "10.100.5.7"), b.putPod("two", "10.100.5.8")
	b.echoIn(two.Path, "80")
	b.listenIn(b.outside, outsideAddr+":7000", echo)
	toPod, toOutside := b.connect(one.Path, "10.100.5.8", "80"), b.connect(one.Path, outsideAddr, "7000")
	all := func(when string) {
		t.Helper()
		if err := errors.Join(toPod.echoes(when), toOutside.echoes(when)); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
	}
	all("before")
	for i := range 3 {
		b.crash()
		all("with no process")
		b.start()
		status := b.putNode("slirp4netns")
		if status.WayOut != "slirp4netns" {
			t.Fatalf("way out after restart %d: %+v", i, status)
		}
		b.putPod("one", "10.100.5.7") // the agent asks again for what is there
		b.putPod("two", "10.100.5.8")
		all("after a restart")
	}
	pods, err := b.client.Pods(t.Context())
	if diff := cmp.Diff([]netapi.PodStatus{one, two}, pods, addresses); err != nil || diff != "" {
		t.Errorf("pods after restarts: %v\n%s", err, diff)
	}
	// A new process goes on keeping the way out, before anybody asks it to.
	b.crash()
	b.start()
	slirp := b.pidOf("slirp4netns")
	if err := syscall.Kill(slirp, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := toPod.echoes("while there is no way out"); err != nil {
		t.Errorf("pods' own traffic needs the way out: %v", err)
	}
	b.eventually("a new way out", 20*time.Second, func() bool {
		out, _ := b.inPod(one.Path, "timeout", "2", "busybox", "sh", "-c", "echo x | busybox nc "+outsideAddr+" 7000")
		return strings.Contains(out, "x")
	})
}

var addresses = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })

// pidOf finds a program of the bed's user.
func (b *bed) pidOf(program string) int {
	b.t.Helper()
	pids, err := b.Processes()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, pid := range pids {
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if strings.TrimSpace(string(comm)) == program {
			return pid
		}
	}
	b.t.Fatalf("no process %s", program)
	return 0
}

func TestAddressesAfterPowerCut(t *testing.T) {
	b := newBed(t)
	b.start()
	b.putNode("")
	want := []netapi.PodStatus{b.putPod("one", "10.100.5.7"), b.putPod("two", "10.100.5.8")}
	if err := b.KillAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = b.cmd.Wait()
	if err := b.WipeRuntime(); err != nil {
		t.Fatal(err)
	}
	b.start()
	if pods, err := b.client.Pods(t.Context()); err != nil || len(pods) != 0 {
		t.Errorf("pods after a power cut: %v, %v", pods, err)
	}
	if _, err := b.client.PutPod(t.Context(), netapi.Pod{UID: "one", Address: want[0].Address}); !errors.Is(err, netapi.ErrNotReady) {
		t.Errorf("a pod before the node: %v", err)
	}
	b.putNode("")
	got := []netapi.PodStatus{b.putPod("one", "10.100.5.7"), b.putPod("two", "10.100.5.8")}
	if diff := cmp.Diff(want, got, addresses); diff != "" {
		t.Error(diff)
	}
	b.echoIn(got[1].Path, "80")
	if err := b.connect(got[0].Path, "10.100.5.8", "80").echoes("again"); err != nil {
		t.Error(err)
	}
}

func TestNewPauseProcess(t *testing.T) {
	b := newBed(t)
	b.start()
	b.putNode("")
	one := b.putPod("one", "10.100.5.7")
	pause, err := userns.PausePID(b.RuntimeDir)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pause, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- b.cmd.Wait() }()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the process left Podman's namespaces behind without an error")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the process stays in namespaces that Podman gave up")
	}
	b.start()
	// The record is there, the pins are plain files now.
	b.putNode("")
	pods, err := b.client.Pods(t.Context())
	if err != nil || len(pods) != 1 || pods[0].Address.IsValid() {
		t.Errorf("stale pods: %v, %v", pods, err)
	}
	again := b.putPod("one", "10.100.5.7")
	if diff := cmp.Diff(one, again, addresses); diff != "" {
		t.Error(diff)
	}
	// Podman's containers find what we made.
	if err := b.LoadImage(t.Context()); err != nil {
		t.Fatal(err)
	}
	out, err := b.Podman(t.Context(), "run", "--rm", "--network", "ns:"+again.Path, cluster.TestImage, "ip", "addr", "show", "eth0")
	if err != nil || !strings.Contains(out, "10.100.5.7/24") {
		t.Errorf("a container in the pod's namespace: %v\n%s", err, out)
	}
}

func TestCleanLeavesNothing(t *testing.T) {
	b := newBed(t)
	b.start()
	b.putNode("")
	b.putPod("one", "10.100.5.7")
	for range 2 { // the second time there is nothing left to remove
		cmd := b.command("clean")
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
	}
	_ = b.cmd.Wait()
	pause, err := userns.PausePID(b.RuntimeDir)
	if err != nil {
		t.Fatal(err)
	}
	pids, err := b.Processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); pid != pause {
			t.Errorf("process %d (%s) is left", pid, comm)
		}
	}
	for _, dir := range []string{"bramble", "netns/bramble-node"} {
		if _, err := os.Lstat(filepath.Join(b.RuntimeDir, dir)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left (%v)", dir, err)
		}
	}
	mounts, err := b.inside("cat", "/proc/mounts").CombinedOutput()
	if err != nil || strings.Contains(string(mounts), b.RuntimeDir) {
		t.Errorf("pins are left: %v\n%s", err, mounts)
	}
}
