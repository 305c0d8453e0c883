package server

import (
	"crypto/tls"
	"net"
	"slices"
	"sync"
)

// Limits of connections. A silent handshake costs the server 13 KB, a connection that
// rests 30 KB, a request 16 KB while it is served.
const (
	maxHandshakes    = 1024 // under way: as many nodes may come back at once
	maxUserConns     = 1024 // of who showed a certificate of this cluster
	maxStrangerConns = 256  // of all others: who joins, has a token, or looks at /version
	maxTunnels       = 16   // of one node: control, bulk, and some that drain
	maxHTTP2         = 64   // what comes beyond is served by HTTP/1.1
	maxHTTP2From     = 16   // of them, from one address
)

// connLimits are those of the API's connections.
type connLimits struct {
	handshakes, http2, strangers *connLimit // by address
	users, tunnels               *connLimit // by user
}

func newConnLimits() *connLimits {
	return &connLimits{
		handshakes: newConnLimit(maxHandshakes, 0), http2: newConnLimit(maxHTTP2, maxHTTP2From), strangers: newConnLimit(maxStrangerConns, 0),
		users: newConnLimit(maxUserConns, 0), tunnels: newConnLimit(0, maxTunnels),
	}
}

// remove counts a connection that was handed on no more.
func (l *connLimits) remove(conn *tls.Conn) {
	l.http2.remove(conn.NetConn())
	l.strangers.remove(conn)
	l.users.remove(conn)
}

// connLimit bounds how many connections there are, of all keys and of each: a key is
// an address or a user. One connection too many is let in, and the oldest of the key
// that has most is closed for it: a flood is paid for by who makes it, and who opens
// few notices nothing. It is safe for concurrent use.
type connLimit struct {
	all, each int // 0: any number

	mu    sync.Mutex // protects keys and conns
	keys  map[net.Conn]string
	conns map[string][]net.Conn // oldest first
}

func newConnLimit(all, each int) *connLimit {
	return &connLimit{all: all, each: each, keys: make(map[net.Conn]string), conns: make(map[string][]net.Conn)}
}

// add counts conn, and closes another that is too many with it.
func (l *connLimit) add(key string, conn net.Conn) {
	l.mu.Lock()
	var over net.Conn
	switch {
	case l.each > 0 && len(l.conns[key]) >= l.each:
		over = l.conns[key][0]
	case l.all > 0 && len(l.keys) >= l.all:
		over = l.conns[l.heaviest(key)][0]
	}
	if over != nil {
		l.drop(over)
	}
	l.put(key, conn)
	l.mu.Unlock()
	if over != nil {
		closeAtOnce(over)
	}
}

// fits counts conn if it is none too many.
func (l *connLimit) fits(key string, conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all > 0 && len(l.keys) >= l.all || l.each > 0 && len(l.conns[key]) >= l.each {
		return false
	}
	l.put(key, conn)
	return true
}

// remove counts conn no more, if it was counted.
func (l *connLimit) remove(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(conn)
}

// put counts conn. Caller holds mu.
func (l *connLimit) put(key string, conn net.Conn) {
	l.keys[conn] = key
	l.conns[key] = append(l.conns[key], conn)
}

// drop forgets conn. Caller holds mu.
func (l *connLimit) drop(conn net.Conn) {
	key, ok := l.keys[conn]
	if !ok {
		return
	}
	delete(l.keys, conn)
	left := l.conns[key]
	if i := slices.Index(left, conn); i >= 0 {
		left = slices.Delete(left, i, i+1)
	}
	if l.conns[key] = left; len(left) == 0 {
		delete(l.conns, key)
	}
}

// heaviest is the key that has most connections, with the one that key is about to
// get. Caller holds mu.
func (l *connLimit) heaviest(key string) string {
	most, count := key, len(l.conns[key])
	if count > 0 {
		count++
	}
	for k, conns := range l.conns {
		if len(conns) > count {
			most, count = k, len(conns)
		}
	}
	return most
}

// closeAtOnce closes conn without TLS's goodbye, which may have to wait.
func closeAtOnce(conn net.Conn) {
	if c, ok := conn.(*tls.Conn); ok {
		conn = c.NetConn()
	}
	_ = conn.Close() // again, perhaps: whoever serves it closes it as well
}

// host is the address of a connection's other end, without its port.
func host(conn net.Conn) string {
	address := conn.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}
