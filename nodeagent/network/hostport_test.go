package network

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	"bramble.dev/bramble/nodeagent/network/netapi"
)

// TestHostPortsForwardUDP has this namespace stand for the node's, and an echo
// for the pod.
func TestHostPortsForwardUDP(t *testing.T) {
	echo, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() { // ends with echo
		buf := make([]byte, 100)
		for {
			n, from, err := echo.ReadFromUDP(buf)
			if err != nil {
				return
			}
			_, _ = echo.WriteToUDP(buf[:n], from)
		}
	}()
	free, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	port := free.LocalAddr().(*net.UDPAddr).Port
	h := newHostPorts("/proc/self/ns/net", slog.Default())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	h.begin(ctx)
	pod := netip.MustParseAddr("127.0.0.1")
	ports := []netapi.HostPort{{Protocol: "UDP", IP: "127.0.0.1", Port: port, PodPort: echo.LocalAddr().(*net.UDPAddr).Port}}
	if err := h.set("u1", pod, ports); !errors.Is(err, netapi.ErrHostPort) {
		t.Errorf("a port that is taken: %v", err)
	}
	_ = free.Close()
	if err := h.set("u1", pod, ports); err != nil {
		t.Fatal(err)
	}
	for range 2 { // two clients
		client, err := net.DialUDP("udp4", nil, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		_ = client.SetDeadline(time.Now().Add(5 * time.Second))
		for _, text := range []string{"one", "two"} {
			answer := make([]byte, 10)
			if _, err := client.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			if n, err := client.Read(answer); err != nil || string(answer[:n]) != text {
				t.Errorf("%q comes back as %q, %v", text, answer[:n], err)
			}
		}
	}
	if err := h.set("u1", netip.Addr{}, nil); err != nil {
		t.Fatal(err)
	}
	again, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		t.Fatalf("the port is not given back: %v", err)
	}
	_ = again.Close()
}
