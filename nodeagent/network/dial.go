package network

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"bramble.dev/bramble/nodeagent/network/netapi"
)

const dialLimit = 10 * time.Second

// getDial connects the caller to an address of the cluster, seen from the
// node's namespace.
func (s *Server) getDial(w http.ResponseWriter, r *http.Request) {
	to, err := netip.ParseAddrPort(r.URL.Query().Get("address"))
	if err != nil {
		s.refuse(w, invalid(fmt.Errorf("cannot read the address to dial: %w", err)))
		return
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "tcp") {
		s.refuse(w, invalid(errors.New("dial needs the header Upgrade: tcp")))
		return
	}
	n, err := s.current()
	if err != nil {
		s.refuse(w, err)
		return
	}
	if !n.ClusterCIDR.Contains(to.Addr()) && !n.ServiceCIDR.Contains(to.Addr()) {
		s.refuse(w, invalid(fmt.Errorf("%s is neither in clusterCIDR %s nor in serviceCIDR %s", to.Addr(), n.ClusterCIDR, n.ServiceCIDR)))
		return
	}
	pod, err := s.dial(r.Context(), to)
	if err != nil {
		s.refuse(w, &netapi.Error{Status: http.StatusBadGateway, Message: err.Error()})
		return
	}
	defer pod.Close()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.refuse(w, err)
		return
	}
	defer client.Close()
	stop := context.AfterFunc(r.Context(), func() { _, _ = client.Close(), pod.Close() })
	defer stop()
	_, err = io.WriteString(client, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
	if err != nil {
		return
	}
	both(pod, client.(halfCloser), afterHead(client, buffered.Reader))
}

func (s *Server) dial(ctx context.Context, to netip.AddrPort) (*net.TCPConn, error) {
	conn, err := dialIn(ctx, s.files.node(), "tcp", to)
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

// afterHead is what the client sends after its request. The server's reader is
// used only for what it holds: it ends the request's context when the client
// half-closes.
func afterHead(client net.Conn, held *bufio.Reader) io.Reader {
	if held.Buffered() == 0 {
		return client
	}
	return io.MultiReader(io.LimitReader(held, int64(held.Buffered())), client)
}

type halfCloser interface {
	net.Conn
	syscall.Conn
	CloseWrite() error
}

// both copies both ways until both sides have ended; the end of one way is
// passed on and leaves the other open for as long as somebody is there to read.
func both(pod, client halfCloser, fromClient io.Reader) {
	var g errgroup.Group
	g.Go(func() error { return copyOn(pod, fromClient, client) })
	g.Go(func() error { return copyOn(client, pod, pod) })
	_ = g.Wait() // a broken connection is the peers' to see
}

// copyOn copies r, which comes from source, to w; when w is broken, source is
// closed, so that its sender hears of it. When the sender of r is gone altogether,
// so is w closed: who is at its other end may never say anything.
func copyOn(w halfCloser, r io.Reader, source halfCloser) error {
	_, err := io.Copy(w, r)
	if err != nil {
		return source.Close()
	}
	if err := w.CloseWrite(); err != nil {
		return err
	}
	if waitGone(source) != nil {
		return nil // closed on our side
	}
	return w.Close()
}

// waitGone returns nil when nothing passes between conn and its peer any more: both
// ways are shut, the peer has closed a socket of this machine, or the network says
// that a TCP connection is gone, at the latest to a keep-alive.
func waitGone(conn halfCloser) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Read(func(fd uintptr) bool {
		fds := []unix.PollFd{{Fd: int32(fd)}} // POLLHUP and POLLERR are always told
		n, err := unix.Poll(fds, 0)
		return err == nil && n == 1
	})
}
