package stream

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// dialTimeout is how long a pod may take to accept a forwarded connection.
const dialTimeout = 10 * time.Second

// portForward serves connections to a pod's ports, until the client or the pod
// goes away: by SPDY, or by SPDY in a WebSocket.
func (h *Handler) portForward(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("pod")
	pod, err := h.Pods.Pod(r.Context(), r.PathValue("namespace"), name)
	if err != nil {
		h.refuse(w, err)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-pod.Gone:
			cancel()
		case <-ended:
		}
	}()
	f := &forwarder{ctx: ctx, dialer: h.Dialer, address: pod.Address}
	watched := &watchedWriter{ResponseWriter: w, ctx: ctx, gone: cancel}
	if !wsstream.IsWebSocketRequest(r) {
		portforward.ServePortForward(watched, r, f, name, pod.UID, nil, 0, creationTimeout, portforward.SupportedProtocols)
		return
	}
	if !wsstream.IsWebSocketRequestWithTunnelingProtocol(r) {
		h.refuse(w, apierrors.NewBadRequest("port-forward by WebSocket needs the subprotocol "+portforward.WebsocketsSPDYTunnelingPortForwardV1))
		return
	}
	server := websocket.Server{Handshake: tunnelHandshake, Handler: func(ws *websocket.Conn) {
		ws.PayloadType = websocket.BinaryFrame
		inner := &http.Request{Method: http.MethodPost, Header: http.Header{
			httpstream.HeaderConnection:      {httpstream.HeaderUpgrade},
			httpstream.HeaderUpgrade:         {spdy.HeaderSpdy31},
			httpstream.HeaderProtocolVersion: {portforward.ProtocolV1Name},
		}}
		portforward.ServePortForward(&tunnelWriter{conn: ws}, inner.WithContext(ctx), f, name, pod.UID, nil, 0, creationTimeout, portforward.SupportedProtocols)
	}}
	server.ServeHTTP(watched, r)
}

// tunnelHandshake accepts the protocol that carries SPDY.
func tunnelHandshake(config *websocket.Config, _ *http.Request) error {
	if !slices.Contains(config.Protocol, portforward.WebsocketsSPDYTunnelingPortForwardV1) {
		return websocket.ErrBadWebSocketProtocol
	}
	config.Protocol = []string{portforward.WebsocketsSPDYTunnelingPortForwardV1}
	return nil
}

// tunnelWriter gives its connection to who takes it over, and drops the head of
// the answer: the client has had one.
type tunnelWriter struct {
	conn   net.Conn
	header http.Header
}

func (w *tunnelWriter) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}

func (w *tunnelWriter) Write(p []byte) (int, error) { return len(p), nil }
func (w *tunnelWriter) WriteHeader(int)             {}

// Hijack follows http.Hijacker.
func (w *tunnelWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return w.conn, bufio.NewReadWriter(bufio.NewReader(w.conn), bufio.NewWriter(w.conn)), nil
}

// forwarder connects streams to a pod, as package portforward wants it.
type forwarder struct {
	ctx     context.Context // of the client's connection, and the pod's life
	dialer  Dialer
	address netip.Addr
}

// PortForward copies both ways until both have ended; the end of one is passed on.
func (f *forwarder) PortForward(_ context.Context, _, _ string, port int32, client io.ReadWriteCloser) error {
	to := netip.AddrPortFrom(f.address, uint16(port))
	dialing, cancel := context.WithTimeout(f.ctx, dialTimeout)
	pod, err := f.dialer.Dial(dialing, to)
	cancel()
	if err != nil {
		return fmt.Errorf("failed to connect to the pod's address %s: %w", to, err)
	}
	defer pod.Close()
	stop := context.AfterFunc(f.ctx, func() { pod.Close() })
	defer stop()
	var group sync.WaitGroup
	group.Go(func() {
		if _, err := io.Copy(pod, client); err != nil {
			pod.Close()
		}
		closeWrite(pod)
	})
	if _, err = io.Copy(client, pod); err != nil {
		pod.Close()
	}
	client.Close() // of this way
	group.Wait()
	if err != nil && f.ctx.Err() == nil {
		return fmt.Errorf("the connection to %s broke off: %w", to, err)
	}
	return nil
}

func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = conn.Close()
}
