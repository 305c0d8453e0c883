// Package stream serves what the server asks of a node through the tunnel: the
// logs of containers, commands in them, and connections to pods. Of exec, attach
// and port-forward the client's protocol, SPDY or WebSocket, ends here: the server
// passes bytes on. Its paths are the kubelet's
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

	"bramble.dev/bramble/nodeagent/container"
)

// Pods finds containers by the names that clients use.
type Pods interface {
	// Container returns the engine's id of the container's present incarnation
	// or the one before. An error is a StatusError that says why there is none.
	Container(ctx context.Context, namespace, pod, container string, previous bool) (id string, err error)
	// Running returns a container that runs, with errors as Container's.
	Running(ctx context.Context, namespace, pod, container string) (container.Target, error)
	// Pod returns a pod with an address, with errors as Container's.
	Pod(ctx context.Context, namespace, name string) (Pod, error)
}

// Pod is a pod as port-forward needs it.
type Pod struct {
	UID     string
	Address netip.Addr
	Gone    <-chan struct{} // closed when the pod is deleted
}

// Commands runs commands in containers, and attaches to them. Both end what they
// do when ctx ends, and do not wait for a read of a client's stream.
type Commands interface {
	// ExecStreams returns the command's exit code; an error is that it did not start.
	ExecStreams(ctx context.Context, t container.Target, command []string, s container.Streams) (code int, err error)
	// Attach returns when the container has ended.
	Attach(ctx context.Context, t container.Target, s container.Streams) error
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

// Handler serves /containerLogs, /exec and /attach/{namespace}/{pod}/{container},
// /portForward/{namespace}/{pod}, /dial and /metrics.
type Handler struct {
	Pods     Pods
	Logs     Logs
	Commands Commands
	Dialer   Dialer
	// Mine reports whether an address belongs to a pod of this node: others are
	// not dialled.
	Mine func(netip.Addr) bool
	// Metrics writes what the board says, in Prometheus' text format of MetricsType.
	Metrics     func(w io.Writer) error
	MetricsType string
	Now         func() time.Time
	Log         *slog.Logger
}

// Routes returns the handler of all paths.
func (h *Handler) Routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", h.logs)
	mux.HandleFunc("GET /dial", h.dial)
	mux.HandleFunc("GET /metrics", h.metrics)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		mux.HandleFunc(method+" /exec/{namespace}/{pod}/{container}", h.exec)
		mux.HandleFunc(method+" /attach/{namespace}/{pod}/{container}", h.attach)
		mux.HandleFunc(method+" /portForward/{namespace}/{pod}", h.portForward)
	}
	return mux
}

// metrics has little to say, and says it at once.
func (h *Handler) metrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", h.MetricsType)
	_ = h.Metrics(w) // the client has gone, if this fails
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
