package network_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"bramble.dev/bramble/nodeagent/network/netapi"
	"bramble.dev/bramble/nodeagent/network/netns"
	"bramble.dev/bramble/test/cluster"
)

const (
	hostAddr    = "10.9.0.2" // the board's
	outsideAddr = "10.9.0.1" // another machine's, and the board's gateway
)

// bed is a board: a user with rootless Podman, and a network namespace as its
// host, with a link to another one that is the world outside.
type bed struct {
	*cluster.User
	t       *testing.T
	host    string // pinned namespaces
	outside string
	resolv  string // the board's resolv.conf
	client  *netapi.Client
	cmd     *exec.Cmd // the network process
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{User: cluster.ForTest(t), t: t}
	id := strings.TrimPrefix(b.Name, "br-")
	b.host, b.outside = "/run/netns/brh-"+id, "/run/netns/bro-"+id
	for _, ns := range []string{b.host, b.outside} {
		b.root("ip", "netns", "add", filepath.Base(ns))
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", filepath.Base(ns)).Run() })
		b.root("ip", "-n", filepath.Base(ns), "link", "set", "lo", "up")
	}
	h, o := filepath.Base(b.host), filepath.Base(b.outside)
	b.root("ip", "-n", h, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", o)
	b.root("ip", "-n", h, "addr", "add", hostAddr+"/24", "dev", "eth0")
	b.root("ip", "-n", o, "addr", "add", outsideAddr+"/24", "dev", "eth0")
	b.root("ip", "-n", o, "link", "set", "eth0", "up")
	b.linkUp()
	b.resolv = filepath.Join(programs, "resolv-"+id)
	if err := os.WriteFile(b.resolv, []byte("nameserver 127.0.0.53\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.client = b.proxied()
	return b
}

func (b *bed) root(args ...string) string {
	b.t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		b.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (b *bed) linkUp() {
	b.root("ip", "-n", filepath.Base(b.host), "link", "set", "eth0", "up")
	b.root("ip", "-n", filepath.Base(b.host), "route", "replace", "default", "via", outsideAddr)
}

func (b *bed) linkDown() {
	b.root("ip", "-n", filepath.Base(b.host), "link", "set", "eth0", "down")
}

// command is bramble-network of the bed's user.
func (b *bed) command(args ...string) *exec.Cmd {
	cmd := b.Command(context.Background(), filepath.Join(programs, "bramble-network"), args...)
	cmd.Stdout, cmd.Stderr = logTo{b.t}, logTo{b.t}
	return cmd
}

// startIn starts cmd in the network namespace ns.
func startIn(ns string, cmd *exec.Cmd) error { return netns.Do(ns, cmd.Start) }

// start starts the network process and waits until it answers.
func (b *bed) start() {
	b.t.Helper()
	b.cmd = b.command("run", "-resolv-conf", b.resolv)
	if err := startIn(b.host, b.cmd); err != nil {
		b.t.Fatal(err)
	}
	cmd := b.cmd
	b.t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	if _, err := b.client.Health(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// crash kills the network process with no chance to say goodbye.
func (b *bed) crash() {
	_ = b.cmd.Process.Kill()
	_ = b.cmd.Wait()
}

// inside is a command in Podman's user and mount namespaces.
func (b *bed) inside(args ...string) *exec.Cmd {
	pause, err := os.ReadFile(filepath.Join(b.RuntimeDir, "libpod/tmp/pause.pid"))
	if err != nil {
		b.t.Fatal(err)
	}
	enter := []string{"--target", string(pause), "--user", "--mount", "--preserve-credentials"}
	return b.Command(b.t.Context(), "nsenter", append(enter, args...)...)
}

// podCmd is a command in the namespace pinned at path, which only Podman's
// mount namespace knows.
func (b *bed) podCmd(path string, args ...string) *exec.Cmd {
	return b.inside(append([]string{"nsenter", "--net=" + path}, args...)...)
}

// inPod runs a command in the namespace and returns what it wrote.
func (b *bed) inPod(path string, args ...string) (string, error) {
	out, err := b.podCmd(path, args...).CombinedOutput()
	return string(out), err
}

func (b *bed) node(wayOut string) netapi.Node {
	return netapi.Node{
		PodCIDR: netip.MustParsePrefix("10.100.5.0/24"), ClusterCIDR: netip.MustParsePrefix("10.100.0.0/14"),
		ServiceCIDR: netip.MustParsePrefix("10.104.0.0/16"), WayOut: wayOut,
	}
}

func (b *bed) putNode(wayOut string) netapi.NodeStatus {
	b.t.Helper()
	status, err := b.client.PutNode(b.t.Context(), b.node(wayOut))
	if err != nil {
		b.t.Fatal(err)
	}
	return status
}

func (b *bed) putPod(uid, addr string) netapi.PodStatus {
	b.t.Helper()
	status, err := b.client.PutPod(b.t.Context(), netapi.Pod{UID: uid, Address: netip.MustParseAddr(addr)})
	if err != nil {
		b.t.Fatal(err)
	}
	return status
}

// proxied returns a client that speaks to the user's socket as the user: the
// process refuses everybody else, root too.
func (b *bed) proxied() *netapi.Client {
	path := filepath.Join(programs, "proxy-"+b.Name)
	l, err := net.Listen("unix", path)
	if err != nil {
		b.t.Fatal(err)
	}
	var g errgroup.Group
	g.Go(func() error {
		for {
			conn, err := l.Accept()
			if err != nil {
				return nil
			}
			g.Go(func() error { return b.forward(conn.(*net.UnixConn)) })
		}
	})
	client := netapi.NewClient(path)
	b.t.Cleanup(func() {
		client.Close()
		_ = l.Close()
		if b.cmd != nil {
			b.crash()
		}
		_ = g.Wait()
	})
	return client
}

func (b *bed) forward(in *net.UnixConn) error {
	defer in.Close()
	out, err := b.dialSocket(b.UID)
	if err != nil {
		return err
	}
	defer out.Close()
	var g errgroup.Group
	for _, way := range [][2]*net.UnixConn{{in, out}, {out, in}} {
		g.Go(func() error {
			_, err := io.Copy(way[0], way[1])
			return errors.Join(err, way[0].CloseWrite())
		})
	}
	return g.Wait()
}

// dialSocket connects to the process's socket as user uid.
func (b *bed) dialSocket(uid int) (conn *net.UnixConn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // not unlocked: the thread ends with its identity
		if _, _, e := syscall.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); e != 0 {
			err = e
			return
		}
		conn, err = net.DialUnix("unix", nil, &net.UnixAddr{Name: netapi.SocketPath(b.RuntimeDir), Net: "unix"})
	}()
	<-done
	return conn, err
}

// listenIn serves each TCP connection to addr in namespace ns with fn.
func (b *bed) listenIn(ns, addr string, fn func(net.Conn)) {
	b.t.Helper()
	var l net.Listener
	if err := netns.Do(ns, func() (err error) { l, err = net.Listen("tcp", addr); return err }); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go fn(conn)
		}
	}()
}

// say answers a connection with a word.
func say(word string) func(net.Conn) {
	return func(c net.Conn) {
		_, _ = fmt.Fprintln(c, word)
		_ = c.Close()
	}
}

// eventually polls until ok holds.
func (b *bed) eventually(what string, limit time.Duration, ok func() bool) {
	b.t.Helper()
	deadline, tick := time.After(limit), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			b.t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

type logTo struct{ t *testing.T }

func (l logTo) Write(p []byte) (int, error) {
	l.t.Logf("%s", strings.TrimRight(string(p), "\n"))
	return len(p), nil
}
