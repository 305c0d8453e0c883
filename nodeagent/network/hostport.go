package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"bramble.dev/bramble/nodeagent/network/netapi"
	"bramble.dev/bramble/nodeagent/network/netns"
)

const (
	maxForwards = 1024 // connections, or UDP's clients, of one port at once
	udpIdle     = 60 * time.Second
)

// hostPorts forwards ports of the host to pods: it listens in the host's
// namespace and dials from the node's. The kernel splices TCP.
type hostPorts struct {
	node string // path of the node's namespace
	log  *slog.Logger

	mu   sync.Mutex // guards pods and ctx
	pods map[string]*forward
	ctx  context.Context // ends what is forwarded
}

// forward is what is forwarded to one pod.
type forward struct {
	pod   netip.Addr
	ports []netapi.HostPort
	stop  context.CancelFunc
	group errgroup.Group
}

func newHostPorts(node string, log *slog.Logger) *hostPorts {
	return &hostPorts{node: node, log: log, pods: map[string]*forward{}}
}

// begin says until when ports are forwarded; run closes them then.
func (h *hostPorts) begin(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ctx = ctx
}

// run closes everything when ctx ends.
func (h *hostPorts) run(ctx context.Context) error {
	<-ctx.Done()
	h.mu.Lock()
	all := h.pods
	h.pods = nil
	h.mu.Unlock()
	for _, f := range all {
		f.close()
	}
	return nil
}

// set forwards these ports to a pod, and no others; the same again interrupts
// nothing. netapi.ErrHostPort: one cannot be had, and none is forwarded.
func (h *hostPorts) set(uid string, pod netip.Addr, ports []netapi.HostPort) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.pods[uid]
	if h.ctx.Err() != nil || old == nil && len(ports) == 0 || old != nil && old.pod == pod && slices.Equal(old.ports, ports) {
		return nil
	}
	if old != nil {
		delete(h.pods, uid)
		old.close()
	}
	if len(ports) == 0 {
		return nil
	}
	f := &forward{pod: pod, ports: slices.Clone(ports)}
	ctx, stop := context.WithCancel(h.ctx)
	f.stop = stop
	for _, p := range ports {
		if err := h.open(ctx, f, p); err != nil {
			f.close()
			return err
		}
	}
	h.pods[uid] = f
	return nil
}

func (f *forward) close() {
	f.stop()
	_ = f.group.Wait()
}

// open listens at one port and forwards what comes until ctx ends.
func (h *hostPorts) open(ctx context.Context, f *forward, p netapi.HostPort) error {
	at := net.JoinHostPort(p.IP, strconv.Itoa(p.Port))
	to := netip.AddrPortFrom(f.pod, uint16(p.PodPort))
	switch p.Protocol {
	case "TCP":
		l, err := (&net.ListenConfig{}).Listen(ctx, network("tcp", p), at)
		if err != nil {
			return portError(p, err)
		}
		f.group.Go(func() error { h.forwardTCP(ctx, l.(*net.TCPListener), to); return nil })
	case "UDP":
		c, err := (&net.ListenConfig{}).ListenPacket(ctx, network("udp", p), at)
		if err != nil {
			return portError(p, err)
		}
		f.group.Go(func() error { h.forwardUDP(ctx, c.(*net.UDPConn), to); return nil })
	default:
		return invalid(fmt.Errorf("host port %d: protocol %q is neither TCP nor UDP", p.Port, p.Protocol))
	}
	return nil
}

// network is IPv4's where no address is named: pods have no other.
func network(name string, p netapi.HostPort) string {
	if p.IP == "" || p.IP == "0.0.0.0" {
		return name + "4"
	}
	return name
}

// portError says whose fault it is that a port cannot be had.
func portError(p netapi.HostPort, err error) error {
	text := fmt.Sprintf("cannot take host port %d/%s: %v", p.Port, p.Protocol, err)
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		text = fmt.Sprintf("host port %d/%s is in use on this node by another pod or program: stop that, or choose another hostPort", p.Port, p.Protocol)
	case errors.Is(err, unix.EACCES):
		text = fmt.Sprintf("host port %d/%s is reserved for root on this node: choose one from %s on, or lower the sysctl net.ipv4.ip_unprivileged_port_start",
			p.Port, p.Protocol, firstPort())
	case errors.Is(err, unix.EADDRNOTAVAIL):
		text = fmt.Sprintf("host port %d/%s: this node has no address %s: change hostIP", p.Port, p.Protocol, p.IP)
	}
	return &netapi.Error{Status: http.StatusLocked, Message: text}
}

func firstPort() string {
	data, err := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start")
	if err != nil {
		return "1024"
	}
	return strings.TrimSpace(string(data))
}

func (h *hostPorts) forwardTCP(ctx context.Context, l *net.TCPListener, to netip.AddrPort) {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	var g errgroup.Group
	g.SetLimit(maxForwards)
	defer func() { _ = g.Wait() }()
	for {
		client, err := l.AcceptTCP()
		if ctx.Err() != nil {
			return
		}
		if err != nil { // of files there are too few, for a while
			if pause(ctx, 100*time.Millisecond) != nil {
				return
			}
			continue
		}
		g.Go(func() error {
			defer client.Close()
			pod, err := dialIn(ctx, h.node, "tcp", to)
			if err != nil {
				h.log.Debug("a pod's port does not answer", "address", to, "err", err)
				return client.SetLinger(0) // the client hears a reset, as without us
			}
			defer pod.Close()
			stop := context.AfterFunc(ctx, func() { _, _ = client.Close(), pod.Close() })
			defer stop()
			both(pod.(*net.TCPConn), client, client)
			return nil
		})
	}
}

func (h *hostPorts) forwardUDP(ctx context.Context, host *net.UDPConn, to netip.AddrPort) {
	stop := context.AfterFunc(ctx, func() { _ = host.Close() })
	defer stop()
	var g errgroup.Group
	g.SetLimit(maxForwards)
	defer func() { _ = g.Wait() }()
	var mu sync.Mutex // guards clients
	clients := map[netip.AddrPort]net.Conn{}
	buf := make([]byte, maxMessage)
	for {
		n, from, err := host.ReadFromUDPAddrPort(buf)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			if pause(ctx, 100*time.Millisecond) != nil {
				return
			}
			continue
		}
		mu.Lock()
		pod := clients[from]
		mu.Unlock()
		if pod == nil {
			if pod, err = dialIn(ctx, h.node, "udp", to); err != nil {
				continue
			}
			mu.Lock()
			clients[from] = pod
			mu.Unlock()
			started := g.TryGo(func() error {
				defer func() {
					mu.Lock()
					delete(clients, from)
					mu.Unlock()
					_ = pod.Close()
				}()
				answers(ctx, host, pod, from)
				return nil
			})
			if !started { // too many clients: as lost on the way
				mu.Lock()
				delete(clients, from)
				mu.Unlock()
				_ = pod.Close()
				continue
			}
		}
		_ = pod.SetReadDeadline(time.Now().Add(udpIdle))
		_, _ = pod.Write(buf[:n]) // datagrams may be lost
	}
}

// answers passes on what the pod sends to one client until neither has said
// anything for a while.
func answers(ctx context.Context, host *net.UDPConn, pod net.Conn, client netip.AddrPort) {
	stop := context.AfterFunc(ctx, func() { _ = pod.Close() })
	defer stop()
	buf := make([]byte, maxMessage)
	_ = pod.SetReadDeadline(time.Now().Add(udpIdle))
	for {
		n, err := pod.Read(buf)
		if errors.Is(err, unix.ECONNREFUSED) {
			continue // the pod does not listen yet
		}
		if err != nil {
			return
		}
		_ = pod.SetReadDeadline(time.Now().Add(udpIdle))
		if _, err := host.WriteToUDPAddrPort(buf[:n], client); err != nil {
			return
		}
	}
}

// dialIn dials one address from a namespace.
func dialIn(ctx context.Context, path, network string, to netip.AddrPort) (conn net.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	err = netns.Do(path, func() (err error) {
		// One address: the socket is made here, not in a goroutine of the dialer.
		conn, err = (&net.Dialer{}).DialContext(ctx, network, to.String())
		return err
	})
	return conn, err
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
