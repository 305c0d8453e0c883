package runtime

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"bramble.dev/bramble/nodeagent/container"
)

// AttachOptions say what a container is, for an attach.
type AttachOptions struct {
	TTY   bool // the container has a terminal: its output is one stream
	Stdin bool // it has an input
	Once  bool // the end of the client's input is the end of the container's
}

// keep reports whether a client that leaves must not take the container's input
// with it. conmon closes it with the first connection that ends.
func (o AttachOptions) keep() bool { return o.Stdin && !o.Once && !o.TTY }

// Attach connects a client's streams to a running container's, from now on. It
// returns when the container has ended, with ctx's error, or when the client takes
// no more. As with ExecStreams, Stdin may still be read then.
func (r *Runtime) Attach(ctx context.Context, id string, o AttachOptions, s container.Streams) error {
	r.calls.Add(1)
	defer r.calls.Add(-1)
	conn, from, err := r.attach(ctx, id, s)
	if err != nil {
		return fmt.Errorf("cannot attach to container %s: %w", id, err)
	}
	if !o.keep() {
		defer conn.Close()
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		defer stop()
	}
	var resizes sync.WaitGroup
	resized, stopResizing := context.WithCancel(ctx)
	defer resizes.Wait()
	defer stopResizing()
	if o.TTY {
		resizes.Go(func() { r.resizeAll(resized, id, s.Resize) })
	}
	if s.Stdin != nil {
		go func() { // ends with the client's stream, which the caller closes
			_, err := io.Copy(conn, s.Stdin)
			if err == nil && o.Once && !o.TTY {
				_ = conn.CloseWrite()
			}
		}()
	}
	if o.keep() {
		return r.share(ctx, conn, from, s)
	}
	if o.TTY {
		_, err = io.Copy(orNowhere(s.Stdout), from)
	} else {
		err = demultiplex(from, orNowhere(s.Stdout), orNowhere(s.Stderr))
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// share writes the container's output until ctx ends or the client takes no more,
// and holds the connection until the container ends.
func (r *Runtime) share(ctx context.Context, conn net.Conn, from io.Reader, s container.Streams) error {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	done := make(chan error, 1)
	r.calls.Add(1)
	go func() { // ends with the container, or Podman's service
		defer r.calls.Add(-1)
		defer conn.Close()
		done <- demultiplex(from, leaver{ctx, endsWith(orNowhere(s.Stdout), leave)}, leaver{ctx, endsWith(orNowhere(s.Stderr), leave)})
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leaver is a client that may leave: once ctx has ended what is written goes
// nowhere.
type leaver struct {
	ctx context.Context
	w   io.Writer
}

func (l leaver) Write(p []byte) (int, error) {
	if l.ctx.Err() == nil {
		_, _ = l.w.Write(p)
	}
	return len(p), nil
}

// attach asks Podman for a connection to the container; the answer's reader has
// what follows its head.
func (r *Runtime) attach(ctx context.Context, id string, s container.Streams) (*net.UnixConn, *bufio.Reader, error) {
	raw, err := (&net.Dialer{}).DialContext(ctx, "unix", r.config.Socket)
	if err != nil {
		return nil, nil, unavailable(ctx, err)
	}
	conn := raw.(*net.UnixConn)
	query := url.Values{"stream": {"true"}, "logs": {"false"},
		"stdin": {strconv.FormatBool(s.Stdin != nil)}, "stdout": {"true"}, "stderr": {"true"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://podman/v4.0.0/libpod/containers/"+url.PathEscape(id)+"/attach?"+query.Encode(), nil)
	if err == nil {
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", "tcp")
		err = req.Write(conn)
	}
	if err != nil {
		conn.Close()
		return nil, nil, unavailable(ctx, err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	from := bufio.NewReader(conn)
	resp, err := http.ReadResponse(from, req)
	if err != nil {
		conn.Close()
		return nil, nil, unavailable(ctx, err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols && resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		conn.Close()
		if resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusConflict {
			return nil, nil, container.ErrNotFound
		}
		return nil, nil, fmt.Errorf("podman answers %s: %s", resp.Status, text)
	}
	return conn, from, nil
}

// resizeAll hands on the sizes of the client's window until there are no more.
func (r *Runtime) resizeAll(ctx context.Context, id string, sizes <-chan container.Size) {
	for {
		select {
		case <-ctx.Done():
			return
		case size, more := <-sizes:
			if !more {
				return
			}
			q := request{method: http.MethodPost, endpoint: "/containers/%s/resize", path: []string{id},
				query: url.Values{"h": {strconv.Itoa(int(size.Height))}, "w": {strconv.Itoa(int(size.Width))}}}
			if err := r.call(ctx, q, nil); err != nil && ctx.Err() == nil {
				r.config.Log.Debug("cannot resize a container's terminal", "container", id, "err", err)
			}
		}
	}
}

// maxFrame bounds what one frame of an attached container may hold.
const maxFrame = 1 << 20

// demultiplex takes apart a container's output as Podman's API frames it: a byte
// for the stream (1 or 2), three of nothing, four for the length.
func demultiplex(r io.Reader, stdout, stderr io.Writer) error {
	var head [8]byte
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			if err == io.EOF {
				return nil
			}
			return fmt.Errorf("cannot read the container's output: %w", err)
		}
		size := int64(binary.BigEndian.Uint32(head[4:]))
		if head[0] > 2 || size > maxFrame {
			return fmt.Errorf("cannot read the container's output: podman sent a frame of stream %d with %d bytes", head[0], size)
		}
		w := stdout
		if head[0] == 2 {
			w = stderr
		}
		if _, err := io.CopyN(w, r, size); err != nil {
			return fmt.Errorf("cannot pass on the container's output: %w", err)
		}
	}
}
