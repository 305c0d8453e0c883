package stream

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"sync"
	"time"
)

// beat is how often a WebSocket's client is told, unasked, that its node is there.
// kubectl pings every five seconds and gives up when no pong has come for a minute.
// But its pings stand behind what it has sent: megabytes in its own kernel, before a
// thin link or a command that is slow to read. A pong may be sent unasked (RFC 6455
// §5.5.3), and that waits for nothing.
const beat = 15 * time.Second

// pong is the frame: final, opcode 10, empty.
var pong = []byte{0x8a, 0}

// beatingConn is the server's end of a WebSocket, which sends pongs between the
// frames that are written to it.
type beatingConn struct {
	net.Conn
	gone   func()     // told when the client does not take a pong
	mu     sync.Mutex // protects frames and due, and holds writes apart
	frames frames
	due    bool // a pong could not be sent in the middle of a frame
}

// run sends a pong every interval until ctx ends.
func (c *beatingConn) run(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		c.mu.Lock()
		c.due = true
		c.send()
		c.mu.Unlock()
	}
}

// send sends the pong that is due, where it may stand.
func (c *beatingConn) send() {
	if c.due && c.frames.between() {
		c.due = false
		if _, err := c.Conn.Write(pong); err != nil {
			c.gone() // who reads may be stuck with what nobody takes
		}
	}
}

func (c *beatingConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, err := c.Conn.Write(p)
	c.frames.pass(p[:n])
	if err == nil {
		c.send()
	}
	return n, err
}

// frames follows what a WebSocket's server writes: the answer to the handshake,
// then frames without masks (RFC 6455 §5.2).
type frames struct {
	answered bool
	head     []byte // the end of the answer so far, or the frame's head so far
	left     uint64 // of the frame's body
}

// between reports whether a frame may begin.
func (f *frames) between() bool { return f.answered && len(f.head) == 0 && f.left == 0 }

// pass takes note of p.
func (f *frames) pass(p []byte) {
	for len(p) > 0 {
		if f.left > 0 {
			n := min(f.left, uint64(len(p)))
			f.left -= n
			p = p[n:]
			continue
		}
		f.head = append(f.head, p[0])
		p = p[1:]
		if f.answered {
			f.begin()
			continue
		}
		if bytes.HasSuffix(f.head, []byte("\r\n\r\n")) {
			f.answered, f.head = true, f.head[:0]
		}
		f.head = f.head[max(0, len(f.head)-3):]
	}
}

// begin begins the frame's body, if its head is whole.
func (f *frames) begin() {
	if len(f.head) < 2 {
		return
	}
	length := uint64(f.head[1] & 0x7f)
	switch rest := f.head[2:]; {
	case length == 126 && len(rest) == 2:
		length = uint64(binary.BigEndian.Uint16(rest))
	case length == 127 && len(rest) == 8:
		length = binary.BigEndian.Uint64(rest)
	case length > 125:
		return
	}
	f.left, f.head = length, f.head[:0]
}
