package server

import (
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"sync"

	"bramble.dev/bramble/server/api"
)

// nodeConns knows the connections on which a node's certificate was shown, also
// sessions that drain, so that a revoked node's can be cut. A connection is
// counted before its certificate is judged: none slips past a cut.
type nodeConns struct {
	mu    sync.Mutex // protects conns
	conns map[net.Conn]string
}

func newNodeConns() *nodeConns { return &nodeConns{conns: make(map[net.Conn]string)} }

// state follows http.Server's ConnState.
func (n *nodeConns) state(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateActive:
		if c, ok := conn.(*tls.Conn); ok {
			n.add(c)
		}
	case http.StateClosed, http.StateHijacked:
		n.remove(conn)
	}
}

func (n *nodeConns) add(conn *tls.Conn) {
	certs := conn.ConnectionState().PeerCertificates
	if len(certs) == 0 {
		return
	}
	if node, ok := strings.CutPrefix(certs[0].Subject.CommonName, api.NodeUserPrefix); ok {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.conns[conn] = node
	}
}

func (n *nodeConns) remove(conn net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, conn)
}

// cut closes a node's connections.
func (n *nodeConns) cut(node string) {
	n.mu.Lock()
	var ending []net.Conn
	for conn, of := range n.conns {
		if of == node {
			ending = append(ending, conn)
		}
	}
	n.mu.Unlock()
	for _, conn := range ending {
		closeAtOnce(conn)
	}
}
