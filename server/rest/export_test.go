package rest

import (
	"io"
	"log/slog"
	"net"
	"time"
)

// Splice connects a client to a node's stream, and looks for the client's end every
// beat.
func Splice(client net.Conn, node io.ReadWriteCloser, beat time.Duration) {
	s := &server{cfg: Config{Log: slog.New(slog.DiscardHandler)}}
	s.splice("n1", client, client, node, beat)
}
