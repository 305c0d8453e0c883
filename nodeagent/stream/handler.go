// Package stream serves what the server asks of a node through the tunnel: the
// logs of containers and raw connections to pods. Its paths are the kubelet's
// own where it has one. The server has authorised each request; the node
// listens on nothing, so that nobody else can ask.
package stream

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pods finds containers by the names that clients use.
type Pods interface {
	// Container returns the engine's id of the container's present incarnation
	// or the one before. An error is a StatusError that says why there is none.
	Container(ctx context.Context, namespace, pod, container string, previous bool) (id string, err error)
}

// Logs gives a container's log.
type Logs interface {
	// Logs writes the log of a container to w until it ends or, when following,
	// until the container or ctx does.
	Logs(ctx context.Context, id string, o LogOptions, w io.Writer) error
}

// Dialer connects to pods.
type Dialer interface {
	Dial(ctx context.Context, address netip.AddrPort) (net.Conn, error)
}

// LogOptions say which part of a log is wanted, as the pods/log subresource's do.
type LogOptions struct {
	Follow     bool
	Timestamps bool
	Tail       int64     // the last lines; -1: all
	Since      time.Time // zero: from the start
}

// Handler serves GET /containerLogs/{namespace}/{pod}/{container} and GET /dial.
type Handler struct {
	Pods   Pods
	Logs   Logs
	Dialer Dialer
	// Mine reports whether an address belongs to a pod of this node: others are
	// not dialled.
	Mine func(netip.Addr) bool
	Now  func() time.Time
	Log  *slog.Logger
}

// Routes returns the handler of all paths.
func (h *Handler) Routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", h.logs)
	mux.HandleFunc("GET /dial", h.dial)
	return mux
}

// refuse answers with an error as a Kubernetes Status.
func (h *Handler) refuse(w http.ResponseWriter, err error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		h.Log.Error("cannot serve the server's request", "err", err)
		status = apierrors.NewInternalError(err)
	}
	s := status.Status()
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(s.Code))
	_ = json.NewEncoder(w).Encode(s) // the client has gone, if this fails
}
