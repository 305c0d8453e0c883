package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"
	"k8s.io/utils/exec"

	"bramble.dev/bramble/nodeagent/container"
)

// creationTimeout is how long a client may take to open its streams.
const creationTimeout = 30 * time.Second

const (
	execFailure   = "error executing command in container"
	attachFailure = "error attaching to container"
)

// exec runs a command in a container with the client's streams, by SPDY or
// WebSocket. When the client goes away, the command is ended.
func (h *Handler) exec(w http.ResponseWriter, r *http.Request) {
	command := r.URL.Query()["command"]
	if len(command) == 0 {
		h.refuse(w, apierrors.NewBadRequest("command: Required value: the command to execute"))
		return
	}
	h.remote(w, r, execFailure, func(ctx context.Context, t container.Target, s container.Streams) error {
		code, err := h.Commands.ExecStreams(ctx, t, command, s)
		if err == nil && code != 0 {
			return exec.CodeExitError{Err: fmt.Errorf("exit status %d", code), Code: code}
		}
		return err
	})
}

// attach connects the client to a container's own streams.
func (h *Handler) attach(w http.ResponseWriter, r *http.Request) {
	h.remote(w, r, attachFailure, func(ctx context.Context, t container.Target, s container.Streams) error {
		s.TTY = t.Spec.TTY
		if !t.Spec.Stdin && s.Stdin != nil {
			// Somebody must read on: what the client says of itself, as its end, stands
			// behind its input. It ends with the client's streams.
			go func(in io.Reader) { _, _ = io.Copy(io.Discard, in) }(s.Stdin)
			s.Stdin = nil
		}
		return h.Commands.Attach(ctx, t, s)
	})
}

// remote serves exec and attach: run gets the client's streams, and a context
// that ends with the client's connection.
func (h *Handler) remote(w http.ResponseWriter, r *http.Request, failure string, run func(context.Context, container.Target, container.Streams) error) {
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		h.refuse(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	target, err := h.Pods.Running(r.Context(), r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container"))
	if err != nil {
		h.refuse(w, err)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	watched := &watchedWriter{ResponseWriter: w, ctx: ctx, gone: cancel}
	runner := runner{target: target, run: run}
	if wsstream.IsWebSocketRequest(r) {
		watched.beat = true
		serveChannels(ctx, watched, r, options, failure, runner)
		return
	}
	r = r.WithContext(ctx)
	supported := remotecommand.SupportedStreamingProtocols
	if failure == attachFailure {
		remotecommand.ServeAttach(watched, r, runner, "", "", "", options, 0, creationTimeout, supported)
		return
	}
	remotecommand.ServeExec(watched, r, runner, "", "", "", nil, options, 0, creationTimeout, supported)
}

// runner is what runs, as package remotecommand wants it.
type runner struct {
	target container.Target
	run    func(context.Context, container.Target, container.Streams) error
}

// ExecInContainer follows remotecommand.Executor.
func (r runner) ExecInContainer(ctx context.Context, _, _, _ string, _ []string, in io.Reader, out, errs io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	return r.AttachContainer(ctx, "", "", "", in, out, errs, tty, resize)
}

// AttachContainer follows remotecommand.Attacher.
func (r runner) AttachContainer(ctx context.Context, _, _, _ string, in io.Reader, out, errs io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := container.Streams{Stdin: in, TTY: tty}
	if out != nil {
		s.Stdout = out
	}
	if errs != nil {
		s.Stderr = errs
	}
	sizes := make(chan container.Size)
	s.Resize = sizes
	go func() { // ends with ctx, or the client's stream of sizes
		defer close(sizes)
		for {
			select {
			case size, more := <-resize:
				if !more {
					return
				}
				select {
				case sizes <- container.Size(size):
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return r.run(ctx, r.target, s)
}

// status is what the client is told at the end, in the kubelet's form.
func status(failure string, err error) metav1.Status {
	var exit exec.ExitError
	switch {
	case err == nil:
		return metav1.Status{Status: metav1.StatusSuccess}
	case errors.As(err, &exit) && exit.Exited():
		return metav1.Status{
			Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason,
			Message: fmt.Sprintf("command terminated with non-zero exit code: %v", exit),
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
				{Type: remotecommand.ExitCodeCauseType, Message: fmt.Sprint(exit.ExitStatus())},
			}},
		}
	}
	return apierrors.NewInternalError(fmt.Errorf("%s: %w", failure, err)).Status()
}
