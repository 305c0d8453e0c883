package network

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"bramble.dev/bramble/nodeagent/network/netns"
)

const (
	dnsPort      = 53
	maxMessage   = 64 << 10
	maxQueries   = 256 // under way at once; more are dropped, and asked again
	queryTimeout = 3 * time.Second
	tcpTimeout   = 30 * time.Second
	maxServers   = 3 // as the C library's resolver
)

// relay answers DNS on the bridge by asking the host's resolvers of the moment,
// from the host's namespace: so those on the host's loopback serve pods too,
// and a pod's resolv.conf stays right when the host moves to another network.
// It passes messages on unread.
type relay struct {
	resolvConf string
	log        *slog.Logger
	wake       chan struct{} // holds one: place changed

	mu    sync.Mutex // protects place
	place relayPlace
}

// relayPlace is where to listen.
type relayPlace struct {
	netns string
	inode uint64 // of the namespace: the same path may become another one
	addr  netip.Addr
}

func newRelay(resolvConf string, log *slog.Logger) *relay {
	return &relay{resolvConf: resolvConf, log: log, wake: make(chan struct{}, 1)}
}

// serve says where to listen, from now on; the same again interrupts nothing.
func (r *relay) serve(path string, addr netip.Addr) {
	place := relayPlace{netns: path, inode: inode(path), addr: addr}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.place == place {
		return
	}
	r.place = place
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// run serves until ctx ends.
func (r *relay) run(ctx context.Context) error {
	for ctx.Err() == nil {
		r.mu.Lock()
		place := r.place
		r.mu.Unlock()
		here, cancel := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() { // ends with cancel
			defer close(done)
			r.stay(here, place)
		}()
		select {
		case <-ctx.Done():
		case <-r.wake:
		}
		cancel()
		<-done
	}
	return nil
}

// stay listens at place until ctx ends, again after each failure.
func (r *relay) stay(ctx context.Context, place relayPlace) {
	retry := time.NewTimer(0)
	defer retry.Stop()
	for place.addr.IsValid() {
		select {
		case <-ctx.Done():
			return
		case <-retry.C:
		}
		if err := r.listen(ctx, place); err != nil {
			r.log.Warn("DNS for pods is interrupted", "err", err)
		}
		retry.Reset(time.Second)
	}
}

// listen serves at one place until ctx ends or a socket breaks.
func (r *relay) listen(ctx context.Context, place relayPlace) error {
	var udp *net.UDPConn
	var tcp *net.TCPListener
	err := netns.Do(place.netns, func() (err error) {
		at := netip.AddrPortFrom(place.addr, dnsPort)
		if udp, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(at)); err != nil {
			return err
		}
		tcp, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
		return err
	})
	if err != nil {
		if udp != nil {
			_ = udp.Close()
		}
		return fmt.Errorf("cannot listen for DNS on %s: %w", place.addr, err)
	}
	g, ctx := errgroup.WithContext(ctx)
	stop := context.AfterFunc(ctx, func() { _, _ = udp.Close(), tcp.Close() })
	defer stop()
	g.Go(func() error { return unlessEnded(ctx, r.serveUDP(ctx, udp)) })
	g.Go(func() error { return unlessEnded(ctx, r.serveTCP(ctx, tcp)) })
	return g.Wait()
}

func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (r *relay) serveUDP(ctx context.Context, conn *net.UDPConn) error {
	var g errgroup.Group
	g.SetLimit(maxQueries)
	defer func() { _ = g.Wait() }()
	buf := make([]byte, maxMessage)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			return err
		}
		query := append([]byte(nil), buf[:n]...)
		if n < dnsHeader {
			continue
		}
		g.TryGo(func() error { // bounded by queryTimeout
			_, err := conn.WriteToUDPAddrPort(r.ask(ctx, query), from)
			return err
		})
	}
}

// ask passes a query on to the host's resolvers in turn, and returns the first
// answer, or a failure of our own.
func (r *relay) ask(ctx context.Context, query []byte) []byte {
	for _, server := range r.servers() {
		answer, err := exchange(ctx, server, query)
		if err == nil {
			return answer
		}
		r.log.Debug("a resolver does not answer", "resolver", server, "err", err)
	}
	return serverFailure(query)
}

func exchange(ctx context.Context, server netip.Addr, query []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp", netip.AddrPortFrom(server, dnsPort).String())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := conn.Write(query); err != nil {
		return nil, err
	}
	buf := make([]byte, 4096) // what clients announce is less; longer comes by TCP
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return nil, err
		}
		if n >= dnsHeader && buf[0] == query[0] && buf[1] == query[1] {
			return buf[:n], nil
		}
	}
}

func (r *relay) serveTCP(ctx context.Context, l *net.TCPListener) error {
	var g errgroup.Group
	g.SetLimit(maxQueries)
	defer func() { _ = g.Wait() }()
	for {
		conn, err := l.AcceptTCP()
		if err != nil {
			return err
		}
		if !g.TryGo(func() error { r.passTCP(ctx, conn); return nil }) {
			_ = conn.Close()
		}
	}
}

// passTCP joins a pod's connection to the first resolver that takes one.
func (r *relay) passTCP(ctx context.Context, pod *net.TCPConn) {
	defer pod.Close()
	for _, server := range r.servers() {
		dialer := net.Dialer{Timeout: queryTimeout}
		conn, err := dialer.DialContext(ctx, "tcp", netip.AddrPortFrom(server, dnsPort).String())
		if err != nil {
			continue
		}
		defer conn.Close()
		end := time.Now().Add(tcpTimeout)
		_, _ = pod.SetDeadline(end), conn.SetDeadline(end)
		stop := context.AfterFunc(ctx, func() { _, _ = pod.Close(), conn.Close() })
		defer stop()
		both(conn.(*net.TCPConn), pod, pod)
		return
	}
}

// servers reads the host's resolvers, anew for each query: it is a small file.
func (r *relay) servers() []netip.Addr {
	data, err := os.ReadFile(r.resolvConf)
	if err != nil {
		r.log.Warn("cannot read the host's resolvers", "err", err)
	}
	return parseResolvers(string(data))
}

// parseResolvers returns the name servers of a resolv.conf(5); none means the
// host itself.
func parseResolvers(text string) []netip.Addr {
	var servers []netip.Addr
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "nameserver" || len(servers) == maxServers {
			continue
		}
		if addr, err := netip.ParseAddr(f[1]); err == nil {
			servers = append(servers, addr)
		}
	}
	if len(servers) == 0 {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	}
	return servers
}

const dnsHeader = 12 // bytes of a DNS message's head, RFC 1035 §4.1.1

// serverFailure is the answer SERVFAIL to a query of at least dnsHeader bytes.
func serverFailure(query []byte) []byte {
	const response, failure = 0x80, 2
	answer := append([]byte(nil), query...)
	answer[2] |= response
	answer[3] = answer[3]&0xf0 | failure
	return answer
}
