package network_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"bramble.dev/bramble/nodeagent/network/netns"
)

const nc = "busybox"

func TestPodsReachEachOtherAndOutside(t *testing.T) {
	for _, wayOut := range []string{"pasta", "slirp4netns"} {
		for _, filtered := range []string{"0", "1"} {
			t.Run(wayOut+" bridge-nf="+filtered, func(t *testing.T) { testTraffic(t, wayOut, filtered) })
		}
	}
}

func testTraffic(t *testing.T, wayOut, filtered string) {
	b := newBed(t)
	b.start()
	status := b.putNode(wayOut)
	if status.WayOut != wayOut || status.WayOutError != "" {
		t.Fatalf("way out %q: %s", status.WayOut, status.WayOutError)
	}
	// A kernel without bridge netfilter has no such switch.
	_, _ = b.inPod(status.Path, "sysctl", "-w", "net.bridge.bridge-nf-call-iptables="+filtered)
	one, two := b.putPod("one", "10.100.5.7"), b.putPod("two", "10.100.5.254")

	b.listenIn(b.outside, outsideAddr+":7000", func(c net.Conn) {
		from := c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr()
		say("outside saw " + from.String())(c)
	})
	b.listenIn(b.host, hostAddr+":7001", say("the board"))
	b.listenIn(b.host, "127.0.0.1:7002", say("SECRET"))
	b.serveDNS("127.0.0.53:53")

	server := b.podCmd(two.Path, nc, "nc", "-ll", "-p", "80", "-e", "/bin/echo", "pod two")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = server.Process.Kill(), server.Wait() }()
	self := b.podCmd(one.Path, nc, "nc", "-ll", "-p", "81", "-e", "/bin/echo", "pod one")
	if err := self.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = self.Process.Kill(), self.Wait() }()

	for _, c := range []struct{ name, addr, port, want string }{
		{"another pod", "10.100.5.254", "80", "pod two"},
		{"itself", "10.100.5.7", "81", "pod one"},
		{"outside, as the board", outsideAddr, "7000", "outside saw " + hostAddr},
		{"the board itself", hostAddr, "7001", "the board"},
	} {
		var out string
		b.eventually(c.name, 5*time.Second, func() bool {
			out, _ = b.inPod(one.Path, "timeout", "3", nc, "nc", c.addr, c.port)
			return strings.Contains(out, c.want)
		})
	}
	for _, c := range []struct{ name, addr, port string }{
		{"the board's loopback by the gateway", "198.18.2.2", "7002"},
		{"the board's loopback by the bridge", "10.100.5.1", "7002"},
		{"the rest of the cluster", "10.101.0.1", "80"},
		{"the services", "10.104.0.1", "80"},
	} {
		if out, err := b.inPod(one.Path, "timeout", "2", nc, "nc", c.addr, c.port); err == nil || strings.Contains(out, "SECRET") {
			t.Errorf("%s (%s): %q, %v", c.name, c.addr, out, err)
		}
	}
	if out, err := b.inPod(one.Path, "timeout", "5", nc, "nslookup", "host.example", status.DNS[0].String()); err != nil || !strings.Contains(out, "1.2.3.4") {
		t.Errorf("DNS: %v\n%s", err, out)
	}
	out, err := b.inPod(one.Path, "cat", "/sys/class/net/eth0/mtu", "/proc/sys/net/ipv4/ip_unprivileged_port_start")
	if err != nil || !strings.Contains(out, "\n0\n") {
		t.Errorf("pod's settings: %q %v", out, err)
	}
	conn, err := b.client.Dial(t.Context(), netip.MustParseAddrPort("10.100.5.254:80"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if word, err := io.ReadAll(conn); err != nil || strings.TrimSpace(string(word)) != "pod two" {
		t.Errorf("dial: %q, %v", word, err)
	}
}

// serveDNS answers every question on the board with 1.2.3.4.
func (b *bed) serveDNS(addr string) {
	b.t.Helper()
	var conn net.PacketConn
	if err := netns.Do(b.host, func() (err error) { conn, err = net.ListenPacket("udp", addr); return err }); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(dnsAnswer(buf[:n]), from)
		}
	}()
}

// dnsAnswer answers a query of one question with 1.2.3.4 if it is of type A,
// and with nothing otherwise.
func dnsAnswer(query []byte) []byte {
	end := 12
	for query[end] != 0 {
		end += int(query[end]) + 1
	}
	end += 5
	answer := append([]byte(nil), query[:end]...)
	answer[2], answer[3] = 0x81, 0x80
	clear(answer[6:12])
	if kind := binary.BigEndian.Uint16(query[end-4:]); kind == 1 {
		answer[7] = 1
		answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 1, 2, 3, 4)
	}
	return answer
}
