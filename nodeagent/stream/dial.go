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

// splice copies both ways until one has ended. The server never ends one way alone:
// the end of what it sends is the end of its client, whom a silent pod must not
// outlive.
func splice(client net.Conn, fromClient *bufio.Reader, pod net.Conn) {
	var group sync.WaitGroup
	group.Go(func() {
		_, _ = io.Copy(pod, fromClient)
		pod.Close()
	})
	_, _ = io.Copy(client, pod)
	pod.Close()
	client.Close() // HTTP's peer is done with us once the pod is
	group.Wait()
}
