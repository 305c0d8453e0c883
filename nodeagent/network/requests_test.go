package network_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bramble.dev/bramble/nodeagent/network/netapi"
	"bramble.dev/bramble/nodeagent/network/netns"
)

// raw sends one request as it is and returns the status and body.
func (b *bed) raw(request string) (int, string) {
	b.t.Helper()
	conn, err := b.dialSocket(b.UID)
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	go func() { _, _ = io.WriteString(conn, request) }() // a large one may not be read to its end
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		b.t.Fatalf("%.60q: %v", request, err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	return res.StatusCode, string(body)
}

func TestBadRequests(t *testing.T) {
	b := newBed(t)
	b.start()
	b.putNode("")
	b.putPod("one", "10.100.5.7")
	put := func(path, body string) string {
		return fmt.Sprintf("PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
	}
	node := func(change string) string {
		return put("/v1/node", `{"podCIDR":"10.100.5.0/24","clusterCIDR":"10.100.0.0/14","serviceCIDR":"10.104.0.0/16",`+change+`}`)
	}
	pod := func(uid, addr string) string {
		return put("/v1/pods/"+uid, `{"uid":"`+uid+`","address":"`+addr+`"}`)
	}
	dial := func(addr string) string {
		return "GET /v1/dial?address=" + addr + " HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
	}
	for _, c := range []struct {
		name, request string
		status        int
		says          string
	}{
		{"no JSON", put("/v1/node", "{"), 400, "cannot read the request's body"},
		{"empty node", put("/v1/node", "{}"), 400, "podCIDR is missing"},
		{"host bits", node(`"podCIDR":"10.100.5.1/24"`), 400, "write 10.100.5.0/24"},
		{"pods outside the cluster", node(`"podCIDR":"10.99.5.0/24"`), 400, "not inside clusterCIDR"},
		{"small range", node(`"podCIDR":"10.100.5.0/31"`), 400, "between a /8 and a /30"},
		{"loopback", node(`"clusterCIDR":"127.0.0.0/8"`), 400, "no range of ordinary addresses"},
		{"IPv6", node(`"podCIDR":"fd00::/64"`), 400, "only IPv4"},
		{"mtu", node(`"mtu":70000`), 400, "mtu 70000"},
		{"program", node(`"wayOut":"../bin/sh"`), 400, "neither pasta nor slirp4netns"},
		{"wrong type", node(`"mtu":"a lot"`), 400, "cannot read the request's body"},
		{"large body", put("/v1/node", `{"x":"`+strings.Repeat("x", 1<<20)+`"}`), 400, "too large"},
		{"no address", put("/v1/pods/two", `{"uid":"two"}`), 400, "has no address"},
		{"another uid", put("/v1/pods/two", `{"uid":"three","address":"10.100.5.9"}`), 400, "is not the path's"},
		{"the gateway", pod("two", "10.100.5.1"), 400, "the bridge's own"},
		{"broadcast", pod("two", "10.100.5.255"), 400, "broadcast"},
		{"network", pod("two", "10.100.5.0"), 400, "network or broadcast"},
		{"another node's", pod("two", "10.100.6.9"), 400, "not in this node's range 10.100.5.0/24"},
		{"mapped address", pod("two", "::ffff:10.100.5.9"), 400, "not in this node's range"},
		{"taken address", pod("two", "10.100.5.7"), 409, "is pod one's"},
		{"the node's name", pod("node", "10.100.5.9"), 400, "pod uid"},
		{"upper case", pod("Two", "10.100.5.9"), 400, "pod uid"},
		{"long uid", pod(strings.Repeat("a", 65), "10.100.5.9"), 400, "pod uid"},
		{"a path", put("/v1/pods/..%2F..%2Fx", `{"uid":"../../x","address":"10.100.5.9"}`), 400, "pod uid"},
		{"delete a path", "DELETE /v1/pods/..%2Fnode HTTP/1.1\r\nHost: x\r\n\r\n", 400, "no pod's uid"},
		{"delete the node", "DELETE /v1/pods/node HTTP/1.1\r\nHost: x\r\n\r\n", 400, "no pod's uid"},
		{"dial nowhere", dial("x"), 400, "cannot read the address"},
		{"dial a name", dial("localhost:80"), 400, "cannot read the address"},
		{"dial loopback", dial("127.0.0.1:22"), 400, "neither in clusterCIDR"},
		{"dial outside", dial("10.9.0.1:80"), 400, "neither in clusterCIDR"},
		{"dial a closed port", dial("10.100.5.7:9"), 502, "refused"},
		{"dial another node", dial("10.101.0.1:9"), 502, "no route to host"},
		{"dial without upgrade", "GET /v1/dial?address=10.100.5.7:80 HTTP/1.1\r\nHost: x\r\n\r\n", 400, "Upgrade"},
		{"unknown path", "GET /v2/pods HTTP/1.1\r\nHost: x\r\n\r\n", 404, ""},
		{"not HTTP", "hello\r\n\r\n", 400, ""},
	} {
		if status, body := b.raw(c.request); status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s: %d %.300s, want %d with %q", c.name, status, body, c.status, c.says)
		}
	}
	if pods, err := b.client.Pods(t.Context()); err != nil || len(pods) != 1 {
		t.Errorf("pods in the end: %v, %v", pods, err)
	}
	if _, err := os.Lstat(filepath.Join(b.RuntimeDir, "x")); err == nil {
		t.Error("a file was made outside the directory")
	}
}

func TestOthersAreRefused(t *testing.T) {
	b := newBed(t)
	b.start()
	const nobody = 65534
	if conn, err := b.dialSocket(nobody); err == nil {
		_ = conn.Close()
		t.Error("another user may open the socket")
	}
	conn, err := b.dialSocket(0) // root may open it, and is refused by its identity
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	_, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
	if n, err := conn.Read(make([]byte, 1)); n != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("another user is answered (%d bytes, %v)", n, err)
	}
	info, err := os.Stat(netapi.SocketPath(b.RuntimeDir))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket's mode is %v (%v)", info.Mode(), err)
	}
	second := b.command("run")
	if err := startIn(b.host, second); err != nil {
		t.Fatal(err)
	}
	if err := second.Wait(); err == nil {
		t.Error("a second process runs")
	}
	if h, err := b.client.Health(t.Context()); err != nil || h.PID != b.cmd.Process.Pid {
		t.Errorf("after the second: %+v, %v", h, err)
	}
}

func TestHostRouteClash(t *testing.T) {
	b := newBed(t)
	b.root("ip", "-n", filepath.Base(b.host), "route", "add", "10.102.0.0/16", "via", outsideAddr)
	b.start()
	_, err := b.client.PutNode(t.Context(), b.node(""))
	if !errors.Is(err, netapi.ErrConflict) || !strings.Contains(err.Error(), "10.102.0.0/16 by eth0") || !strings.Contains(err.Error(), "set clusterCIDR") {
		t.Errorf("a range that the host routes elsewhere: %v", err)
	}
	b.root("ip", "-n", filepath.Base(b.host), "route", "del", "10.102.0.0/16")
	b.putNode("")
	// What clashes only later must not take the network from running pods.
	b.root("ip", "-n", filepath.Base(b.host), "route", "add", "10.102.0.0/16", "via", outsideAddr)
	b.putNode("")
}

func TestWayOutWaitsForALink(t *testing.T) {
	b := newBed(t)
	b.linkDown()
	b.start()
	status := b.putNode("pasta")
	if status.WayOut != "" || status.WayOutError == "" {
		t.Errorf("without a link: %+v", status)
	}
	t.Log(status.WayOutError)
	one := b.putPod("one", "10.100.5.7") // pods do not wait for it
	b.linkUp()
	b.listenIn(b.outside, outsideAddr+":7000", say("hello"))
	b.eventually("a way out", 10*time.Second, func() bool {
		out, _ := b.inPod(one.Path, "timeout", "2", "busybox", "nc", outsideAddr, "7000")
		return strings.Contains(out, "hello")
	})
	if status := b.putNode("pasta"); status.WayOut != "pasta" || status.WayOutError != "" {
		t.Errorf("with a link: %+v", status)
	}
}

func TestDialKeepsHalfClose(t *testing.T) {
	b := newBed(t)
	b.start()
	b.putNode("")
	one := b.putPod("one", "10.100.5.7")
	var l net.Listener
	// The namespace is pinned in Podman's mount namespace: seen from here by a
	// process that is in it.
	holder := b.podCmd(one.Path, "sleep", "60")
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = holder.Process.Kill(), holder.Wait() }()
	ns := fmt.Sprintf("/proc/%d/ns/net", holder.Process.Pid)
	b.eventually("the holder is in the pod", 5*time.Second, func() bool {
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", holder.Process.Pid))
		return strings.TrimSpace(string(comm)) == "sleep"
	})
	if err := netns.Do(ns, func() (err error) { l, err = net.Listen("tcp", "10.100.5.7:80"); return err }); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		all, _ := io.ReadAll(conn) // until the client's half close
		got <- string(all)
		_, _ = io.Copy(conn, strings.NewReader(strings.Repeat("answer ", 100_000)))
	}()
	conn, err := b.client.Dial(t.Context(), netip.MustParseAddrPort("10.100.5.7:80"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "question"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*netapi.Stream).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if q := <-got; q != "question" {
		t.Errorf("the pod read %q", q)
	}
	if n, err := io.Copy(io.Discard, conn); err != nil || n != 700_000 {
		t.Errorf("read %d bytes, %v", n, err)
	}
}

// TestRandomOperations compares the process with a model while pods come, go
// and change address and the process is killed.
func TestRandomOperations(t *testing.T) {
	b := newBed(t)
	b.start()
	b.putNode("")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	model := map[string]string{}
	owner := func(addr string) string {
		for uid, a := range model {
			if a == addr {
				return uid
			}
		}
		return ""
	}
	for i := range 20 {
		uid, addr := fmt.Sprintf("pod-%d", rng.IntN(4)), fmt.Sprintf("10.100.5.%d", 2+rng.IntN(5))
		switch op := rng.IntN(10); {
		case op < 6:
			status, err := b.client.PutPod(t.Context(), netapi.Pod{UID: uid, Address: netip.MustParseAddr(addr)})
			if other := owner(addr); other != "" && other != uid {
				if !errors.Is(err, netapi.ErrConflict) {
					t.Fatalf("%d: put %s %s, which is %s's: %v", i, uid, addr, other, err)
				}
				break
			}
			if err != nil || status.Address.String() != addr {
				t.Fatalf("%d: put %s %s: %+v, %v", i, uid, addr, status, err)
			}
			model[uid] = addr
		case op < 8:
			if err := b.client.DeletePod(t.Context(), uid); err != nil {
				t.Fatalf("%d: delete %s: %v", i, uid, err)
			}
			delete(model, uid)
		default:
			b.crash()
			b.start()
		}
		pods, err := b.client.Pods(t.Context())
		if err != nil || len(pods) != len(model) {
			t.Fatalf("%d: %d pods, want %v (%v)", i, len(pods), model, err)
		}
		for _, p := range pods {
			if model[p.UID] != p.Address.String() {
				t.Fatalf("%d: %+v, want %v", i, p, model)
			}
			if out, err := b.inPod(p.Path, "timeout", "2", "busybox", "nc", "-w", "1", "10.100.5.1", "9"); !strings.Contains(out, "refused") {
				t.Fatalf("%d: pod %s does not reach the bridge: %v %s", i, p.UID, err, out)
			}
		}
	}
}
