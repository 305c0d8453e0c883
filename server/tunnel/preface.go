package tunnel

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// Channel is which of a node's two connections this is.
type Channel string

// Control carries what must never wait: watches, status, leases. Bulk carries
// what may be large: logs, copies, proxied traffic.
const (
	Control Channel = "control"
	Bulk    Channel = "bulk"
)

const (
	maxPreface = 16  // bytes of the first line, with its end
	maxReply   = 512 // bytes of the answer, with its end
)

// ErrExpired is what the server answers to a certificate that has expired: it
// still serves to renew itself.
var ErrExpired = errors.New("the node's certificate has expired")

// RefusedError is the server's no to a connection. It matches ErrExpired where
// that is the reason.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return "the server refused the connection: " + e.Reason }

// Is reports whether the reason is target, for errors.Is.
func (e *RefusedError) Is(target error) bool {
	return target == ErrExpired && strings.HasPrefix(e.Reason, ErrExpired.Error())
}

// Refuse answers a new connection with why it is not served and leaves closing
// it to the caller.
func Refuse(w io.Writer, reason error) error {
	text := strings.Map(printable, reason.Error())
	if len(text) > maxReply-4 {
		text = text[:maxReply-4]
	}
	_, err := io.WriteString(w, "no "+text+"\n")
	return err
}

func printable(r rune) rune {
	if r < ' ' {
		return ' '
	}
	return r
}

// readPreface reads the line that opens a connection and not a byte more.
func readPreface(r io.Reader) (Channel, error) {
	line, err := readLine(r, maxPreface)
	if err != nil {
		return "", fmt.Errorf("cannot read the connection's first line: %w", err)
	}
	switch c := Channel(line); c {
	case Control, Bulk:
		return c, nil
	}
	return "", fmt.Errorf("the connection's first line is %q, not %q or %q", line, Control, Bulk)
}

// readReply reads the server's answer to the first line.
func readReply(r io.Reader) error {
	line, err := readLine(r, maxReply)
	if err != nil {
		return fmt.Errorf("cannot read the server's answer: %w", err)
	}
	if line == "ok" {
		return nil
	}
	if reason, ok := strings.CutPrefix(line, "no "); ok {
		return &RefusedError{Reason: reason}
	}
	return fmt.Errorf("the server's answer is %q, which this version does not know", line)
}

// readLine reads up to a line end, byte by byte: what follows is yamux's.
func readLine(r io.Reader, limit int) (string, error) {
	var line []byte
	var b [1]byte
	for len(line) < limit {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return "", err
		}
		if b[0] == '\n' {
			return string(line), nil
		}
		line = append(line, b[0])
	}
	return "", fmt.Errorf("no line end in %d bytes", limit)
}
