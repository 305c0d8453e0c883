package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/objects"
)

// heartbeatsBy is who manages the fields that a heartbeat changes: the same as
// when the agent renews by the API.
const heartbeatsBy = "bramble-agent"

// heartbeats serves api.HeartbeatsPath: after the upgrade, each byte that a node
// sends renews its own Lease, and is answered by one when that is done. Whatever
// keeps it from being renewed ends the stream: the node then renews by the API,
// whose answer says why. So does a change of what the answers' headers tell nodes.
type heartbeats struct {
	registry *objects.Registry
	lease    *objects.Kind
	follows  func() []string
	now      func() time.Time
	log      *slog.Logger
}

// ServeHTTP follows http.Handler. The stream goes on when it has returned, until
// the node's connection ends, which waits for it.
func (h heartbeats) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, _ := api.UserFrom(r.Context())
	node, ok := user.Node()
	switch {
	case !ok || r.TLS != nil:
		http.Error(w, "only a node has heartbeats, through its tunnel", http.StatusForbidden)
		return
	case r.Header.Get("Upgrade") != api.HeartbeatsProtocol || r.ProtoMajor != 1:
		w.Header().Set("Upgrade", api.HeartbeatsProtocol)
		http.Error(w, "this needs an upgrade to "+api.HeartbeatsProtocol, http.StatusUpgradeRequired)
		return
	}
	follows := len(h.follows()) // before the header that says which
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", api.HeartbeatsProtocol)
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		h.log.Error("cannot take over a stream of heartbeats", "node", node, "err", err)
		return
	}
	// Answered only now: net/http, which reads ahead, would swallow the first beat.
	var answer bytes.Buffer
	answer.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
	_ = w.Header().Write(&answer) // a buffer takes it all
	answer.WriteString("\r\n")
	if _, err := conn.Write(answer.Bytes()); err != nil {
		_ = conn.Close()
		return
	}
	if small, ok := conn.(interface{ Shrink() }); ok {
		small.Shrink() // a beat is a byte
	}
	// The request's goroutine, whose stack is large, ends here.
	go h.serve(context.WithoutCancel(r.Context()), conn, node, follows)
}

func (h heartbeats) serve(ctx context.Context, conn net.Conn, node string, follows int) {
	defer conn.Close()
	var beat [1]byte
	for {
		if _, err := io.ReadFull(conn, beat[:]); err != nil {
			return // the node or its connection is gone
		}
		done := make(chan error, 1)
		go func() { done <- h.renew(ctx, node) }() // it needs a stack that this goroutine would keep
		if err := <-done; err != nil {
			h.log.Debug("cannot renew a lease by a heartbeat", "node", node, "err", err)
			return
		}
		if len(h.follows()) != follows {
			return
		}
		if _, err := conn.Write(beat[:]); err != nil {
			return
		}
	}
}

// renew moves the lease's renewTime, by this server's clock.
func (h heartbeats) renew(ctx context.Context, node string) error {
	_, err := h.registry.Update(ctx, h.lease, "", corev1.NamespaceNodeLease, node, func(current objects.Object) (objects.Object, error) {
		lease, ok := current.(*coordinationv1.Lease)
		if !ok {
			return nil, errors.New("a lease is none")
		}
		now := metav1.NewMicroTime(h.now())
		lease.Spec.RenewTime = &now
		return lease, nil
	}, objects.WriteOptions{FieldManager: heartbeatsBy})
	return err
}
