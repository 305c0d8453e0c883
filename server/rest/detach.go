package rest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/objects"
)

// detached is a watch that a node reads through its tunnel, on a stream that was taken
// over from net/http: of the two goroutines, the buffers and the deep stack that each
// request keeps there, it keeps two small stacks. A server has one for each node.
//
// It is an http.ResponseWriter whose body goes out in chunks (RFC 9112, section 7.1),
// one for each Flush. It is for one goroutine at a time.
type detached struct {
	conn    net.Conn
	session context.Context // of the connection that the stream is in
	rec     *recorder
	header  http.Header
	head    []byte // the status line and the header, until they are sent
	body    []byte // of the chunk to be sent next
	err     error  // the first; all that follows fails
	log     *slog.Logger
}

// chunkSize is how much is kept before it is sent without a Flush. The session keeps a
// buffer as large as the largest piece that was written to it.
const chunkSize = 4 << 10

// detach takes over the stream of a request that came by a tunnel, nil for any other.
func (s *server) detach(w http.ResponseWriter, r *http.Request) *detached {
	session := api.Session(r.Context())
	rec, ok := w.(*recorder)
	if session == nil || !ok || r.ProtoMajor != 1 {
		return nil
	}
	conn, _, err := rec.Hijack()
	if err != nil {
		return nil // as any other, then
	}
	if small, ok := conn.(interface{ Shrink() }); ok {
		small.Shrink() // the request is read, and nothing follows it
	}
	d := &detached{conn: conn, session: session, rec: rec, header: rec.Header(), log: s.cfg.Log}
	rec.outlives, rec.ResponseWriter = true, nil // with it go net/http's buffers
	return d
}

// serve sends a watch until it ends, its time is over, the node closes the stream, or
// the session ends.
func (d *detached) serve(timeout time.Duration, out *eventStream, changes *objects.Watch) {
	defer d.rec.finish()
	defer d.conn.Close()
	ctx, cancel := context.WithTimeout(d.session, timeout)
	defer cancel()
	defer context.AfterFunc(d.session, func() { d.conn.Close() })() // whoever writes returns
	go func() {
		_, _ = d.conn.Read(make([]byte, 1)) // nothing comes but the end
		cancel()
	}()
	for d.aside(func() bool { return d.more(ctx, out, changes) }) {
		changes.Wait(ctx)
	}
}

// more sends what there is and reports whether the watch goes on, after its last chunk
// otherwise.
func (d *detached) more(ctx context.Context, out *eventStream, changes *objects.Watch) bool {
	if d.header != nil {
		out.start()
	}
	if ctx.Err() == nil && out.step(changes) {
		return true
	}
	_ = d.SetWriteDeadline(time.Now().Add(writeTimeout))
	if d.FlushError() == nil {
		_, _ = io.WriteString(d.conn, "0\r\n\r\n") // the conn is closed next, whatever comes
	}
	return false
}

// aside runs f in a goroutine of its own: the stack that it needs ends with it.
func (d *detached) aside(f func() bool) (going bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				going = false
				d.log.Error("cannot go on with a watch", "panic", p, "stack", string(debug.Stack()))
			}
		}()
		going = f()
	}()
	<-done
	return going
}

func (d *detached) Header() http.Header { return d.header }

func (d *detached) WriteHeader(code int) {
	d.rec.sent = code
	d.header.Set("Connection", "close")
	d.header.Set("Transfer-Encoding", "chunked")
	var head bytes.Buffer
	fmt.Fprintf(&head, "HTTP/1.1 %d %s\r\n", code, http.StatusText(code))
	_ = d.header.Write(&head) // a buffer takes it all
	head.WriteString("\r\n")
	d.head, d.header = head.Bytes(), nil
}

func (d *detached) Write(p []byte) (int, error) {
	d.body = append(d.body, p...)
	if len(d.body) > chunkSize {
		_ = d.FlushError()
	}
	return len(p), d.err
}

// FlushError sends the head, if it was not, and what was written since the last time.
// http.ResponseController calls it.
func (d *detached) FlushError() error {
	if d.err != nil {
		return d.err
	}
	out := d.head
	if len(d.body) > 0 {
		out = fmt.Appendf(out, "%x\r\n%s\r\n", len(d.body), d.body)
	}
	d.head, d.body = nil, nil // kept, they would be as large as the largest were
	for piece := range slices.Chunk(out, chunkSize) {
		if _, d.err = d.conn.Write(piece); d.err != nil {
			break
		}
	}
	return d.err
}

// SetWriteDeadline is for http.ResponseController.
func (d *detached) SetWriteDeadline(t time.Time) error { return d.conn.SetWriteDeadline(t) }
