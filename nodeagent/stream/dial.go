package stream

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// dial answers with a raw stream to a pod's address.
func (h *Handler) dial(w http.ResponseWriter, r *http.Request) {
	address, err := netip.ParseAddrPort(r.URL.Query().Get("address"))
	if err != nil {
		h.refuse(w, apierrors.NewBadRequest("address: must be IP:PORT"))
		return
	}
	if !h.Mine(address.Addr()) {
		h.refuse(w, apierrors.NewBadRequest(fmt.Sprintf("address: %s is not of a pod of this node", address.Addr())))
		return
	}
	pod, err := h.Dialer.Dial(r.Context(), address)
	if err != nil {
		h.refuse(w, apierrors.NewServiceUnavailable(fmt.Sprintf("cannot connect to the pod: %v", err)))
		return
	}
	defer pod.Close()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		h.refuse(w, fmt.Errorf("cannot take over the connection: %w", err))
		return
	}
	defer client.Close()
	if _, err := io.WriteString(client, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"); err != nil {
		return
	}
	splice(client, buffered.Reader, pod)
}

// splice copies both ways until both have ended; an end of one direction is
// passed on.
func splice(client net.Conn, fromClient *bufio.Reader, pod net.Conn) {
	var group sync.WaitGroup
	group.Go(func() {
		if _, err := io.Copy(pod, fromClient); err != nil {
			pod.Close()
		}
		closeWrite(pod)
	})
	if _, err := io.Copy(client, pod); err != nil {
		pod.Close()
	}
	closeWrite(client)
	client.Close() // HTTP's peer is done with us once the pod is
	group.Wait()
}

func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = conn.Close()
}
