package stream

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
)

// watchedWriter is a ResponseWriter whose connection, once it is taken over, is
// watched: its end ends ctx, and ctx's end closes it.
type watchedWriter struct {
	http.ResponseWriter
	ctx  context.Context
	gone context.CancelFunc
	beat bool // it is a WebSocket, whose client is told that the node is there
}

// Hijack follows http.Hijacker.
func (w *watchedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	early, err := buffered.Reader.Peek(buffered.Reader.Buffered())
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	if w.beat {
		beating := &beatingConn{Conn: conn, gone: w.gone}
		go beating.run(w.ctx, beat)
		conn = beating
	}
	watched := &watchedConn{Conn: conn, gone: w.gone}
	watched.stop = context.AfterFunc(w.ctx, func() { conn.Close() })
	reader := io.MultiReader(bytes.NewReader(bytes.Clone(early)), watched)
	return watched, bufio.NewReadWriter(bufio.NewReader(reader), bufio.NewWriter(watched)), nil
}

type watchedConn struct {
	net.Conn
	gone context.CancelFunc
	stop func() bool
}

func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.gone()
	}
	return n, err
}

func (c *watchedConn) Close() error {
	c.stop()
	return c.Conn.Close()
}
