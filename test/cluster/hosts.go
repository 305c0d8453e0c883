package cluster

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Hosts are network namespaces that stand for machines, on one switch, which is
// a namespace too. Nothing of them is seen in the machine's own network.
type Hosts struct {
	t     testing.TB
	id    string
	count int
}

// gateway is the switch's address, at which the server listens.
const gateway = "10.77.0.1"

// NewHosts makes the switch. It and all hosts are gone when t ends.
func NewHosts(t testing.TB) *Hosts {
	t.Helper()
	id := make([]byte, 3)
	if _, err := rand.Read(id); err != nil {
		t.Fatal(err)
	}
	h := &Hosts{t: t, id: "br" + hex.EncodeToString(id)}
	h.namespace(h.id)
	h.ip("-n", h.id, "link", "add", "switch", "type", "bridge")
	h.ip("-n", h.id, "link", "set", "switch", "up")
	h.ip("-n", h.id, "address", "add", gateway+"/24", "dev", "switch")
	return h
}

// Add makes a host and returns the path of its network namespace.
func (h *Hosts) Add() string {
	h.t.Helper()
	h.count++
	name := fmt.Sprintf("%s-%d", h.id, h.count)
	h.namespace(name)
	port := fmt.Sprintf("port%d", h.count)
	h.ip("link", "add", port, "netns", h.id, "type", "veth", "peer", "name", "eth0", "netns", name)
	h.ip("-n", h.id, "link", "set", port, "master", "switch", "up")
	h.ip("-n", name, "address", "add", fmt.Sprintf("10.77.0.%d/24", 10+h.count), "dev", "eth0")
	h.ip("-n", name, "link", "set", "eth0", "up")
	h.ip("-n", name, "route", "add", "default", "via", gateway)
	return netnsPath(name)
}

// Thin makes the link of the host that Add made last thin, both ways, such as
// "256kbit"; Wide makes it wide again.
func (h *Hosts) Thin(rate string) {
	h.t.Helper()
	for _, end := range h.ends() {
		h.tc(end, "add", "root", "tbf", "rate", rate, "burst", "4kb", "latency", "400ms")
	}
}

// Wide ends what Thin did.
func (h *Hosts) Wide() {
	h.t.Helper()
	for _, end := range h.ends() {
		h.tc(end, "delete", "root")
	}
}

// linkEnd is one end of a host's link.
type linkEnd struct{ netns, device string }

// ends are those of the last host's link.
func (h *Hosts) ends() [2]linkEnd {
	return [2]linkEnd{{h.id, fmt.Sprintf("port%d", h.count)}, {fmt.Sprintf("%s-%d", h.id, h.count), "eth0"}}
}

func (h *Hosts) tc(end linkEnd, verb string, args ...string) {
	h.t.Helper()
	all := append([]string{"-n", end.netns, "qdisc", verb, "dev", end.device}, args...)
	if out, err := exec.Command("tc", all...).CombinedOutput(); err != nil {
		h.t.Fatalf("tc %v: %v: %s", all, err, out)
	}
}

func netnsPath(name string) string { return "/run/netns/" + name }

func (h *Hosts) namespace(name string) {
	h.t.Helper()
	h.ip("netns", "add", name)
	h.t.Cleanup(func() {
		if out, err := exec.Command("ip", "netns", "delete", name).CombinedOutput(); err != nil {
			h.t.Errorf("cannot delete the network namespace %s: %v: %s", name, err, out)
		}
	})
	h.ip("-n", name, "link", "set", "lo", "up")
}

func (h *Hosts) ip(args ...string) {
	h.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		h.t.Fatalf("ip %v: %v: %s", args, err, out)
	}
}

// listen returns a socket that listens on the switch.
func (h *Hosts) listen() *os.File {
	h.t.Helper()
	type result struct {
		file *os.File
		err  error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine: it is in another namespace
		file, err := listenIn(netnsPath(h.id))
		done <- result{file, err}
	}()
	r := <-done
	if r.err != nil {
		h.t.Fatalf("cannot listen on the switch: %v", r.err)
	}
	return r.file
}

func listenIn(netns string) (*os.File, error) {
	ns, err := os.Open(netns)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	return listenFile(gateway + ":6443")
}

func listenFile(address string) (*os.File, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	return l.(*net.TCPListener).File()
}
