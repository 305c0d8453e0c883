package server_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// dialFrom connects to a server from an address of this machine.
func (r *running) dialFrom(t *testing.T, from byte) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, from)}}
	conn, err := d.DialContext(t.Context(), "tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// shakeFrom connects by TLS, with a certificate or none.
func (r *running) shakeFrom(t *testing.T, from byte, cert *tls.Certificate, protos ...string) *tls.Conn {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: protos}
	if cert != nil {
		config.Certificates = []tls.Certificate{*cert}
	}
	conn := tls.Client(r.dialFrom(t, from), config)
	if err := conn.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return conn
}

// adminCert is the administrator's certificate.
func (r *running) adminCert(t *testing.T) *tls.Certificate {
	t.Helper()
	cert, err := tls.X509KeyPair(r.config.CertData, r.config.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	return &cert
}

// asks sends a request by HTTP/1.1, with a header of that size, and returns the code.
func asks(t *testing.T, conn net.Conn, header int) (int, error) {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return 0, err
	}
	if _, err := fmt.Fprintf(conn, "GET /version HTTP/1.1\r\nHost: x\r\nX-Large: %s\r\n\r\n", strings.Repeat("x", header)); err != nil {
		return 0, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, errors.Join(err, resp.Body.Close())
}

// isClosed reports whether the server ends a connection within limit.
func isClosed(t *testing.T, conn net.Conn, limit time.Duration) bool {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return true
	}
	_, err := conn.Read(make([]byte, 1))
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

// TestAFloodOfConnections: connections of strangers and silent ones are bounded, and
// the address that opens most pays for it.
func TestAFloodOfConnections(t *testing.T) {
	r := start(t, t.TempDir(), nil)
	for _, kind := range []struct {
		name string
		most int
		open func(from byte) net.Conn
	}{
		{"silent", 1024, func(from byte) net.Conn { return r.dialFrom(t, from) }},
		{"strangers", 256, func(from byte) net.Conn {
			conn := r.shakeFrom(t, from, nil, "http/1.1")
			if code, err := asks(t, conn, 0); code != http.StatusOK {
				t.Fatalf("a stranger who is not too many got %d, %v", code, err)
			}
			return conn
		}},
	} {
		neighbour, oldest := kind.open(2), kind.open(1)
		var newest net.Conn
		for range kind.most - 1 {
			newest = kind.open(1)
		}
		if !isClosed(t, oldest, 5*time.Second) {
			t.Errorf("%s: %d connections are open, and one more", kind.name, kind.most)
		}
		for name, conn := range map[string]net.Conn{"the newest": newest, "another address's": neighbour} {
			if isClosed(t, conn, 50*time.Millisecond) {
				t.Errorf("%s: %s is closed", kind.name, name)
			}
		}
		conn := r.shakeFrom(t, 1, r.adminCert(t), "http/1.1")
		if code, err := asks(t, conn, 0); code != http.StatusOK {
			t.Errorf("%s: beside the flood a user got %d, %v", kind.name, code, err)
		}
	}
}

// TestFewConnectionsHaveHTTP2: each may have many requests under way, so that an address
// with many is served by HTTP/1.1.
func TestFewConnectionsHaveHTTP2(t *testing.T) {
	r := start(t, t.TempDir(), nil)
	proto := func(from byte) (*tls.Conn, string) {
		conn := r.shakeFrom(t, from, r.adminCert(t), "h2", "http/1.1")
		return conn, conn.ConnectionState().NegotiatedProtocol
	}
	first, by := proto(1)
	for range 15 {
		if _, p := proto(1); p != by || by != "h2" {
			t.Fatalf("one of 16 connections is by %q", p)
		}
	}
	conn, by := proto(1)
	if code, err := asks(t, conn, 0); by != "http/1.1" || code != http.StatusOK {
		t.Errorf("the 17th connection is by %q, and got %d, %v", by, code, err)
	}
	if _, by := proto(2); by != "h2" {
		t.Errorf("the first of another address is by %q", by)
	}
	_ = first.Close()
	eventually(t, "one that closed makes room", func() bool { _, by := proto(1); return by == "h2" })
}

// TestAConnectionHasFewStreams: what is sent and reset at once is bounded by the streams
// of a connection, and by the headers of each.
func TestAConnectionHasFewStreams(t *testing.T) {
	r := start(t, t.TempDir(), nil)
	for _, who := range []struct {
		name    string
		cert    *tls.Certificate
		streams uint32
		code    int // for a header of 40 KB
	}{
		{"a user", r.adminCert(t), 32, http.StatusOK},
		{"a stranger", nil, 8, http.StatusRequestHeaderFieldsTooLarge},
	} {
		conn := r.shakeFrom(t, 1, who.cert, "h2")
		if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
			t.Fatal(err)
		}
		framer := http2.NewFramer(conn, conn)
		if err := framer.WriteSettings(); err != nil {
			t.Fatal(err)
		}
		frame, err := framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		settings, ok := frame.(*http2.SettingsFrame)
		if !ok {
			t.Fatalf("%s: the first frame is %v", who.name, frame)
		}
		if got, _ := settings.Value(http2.SettingMaxConcurrentStreams); got != who.streams {
			t.Errorf("%s may have %d streams, want %d", who.name, got, who.streams)
		}
		if code, err := asks(t, r.shakeFrom(t, 1, who.cert, "http/1.1"), 40_000); code != who.code {
			t.Errorf("%s got %d, %v for a large header, want %d", who.name, code, err, who.code)
		}
	}
}

// TestANodeHasFewTunnels: a node that opens more and more loses the oldest, and no other
// node does.
func TestANodeHasFewTunnels(t *testing.T) {
	r := start(t, t.TempDir(), nil)
	stolen, other := r.join(t, "stolen", nil), r.join(t, "other", nil)
	oldest := r.shakeFrom(t, 1, &stolen.cert, "bramble/1")
	beside := r.shakeFrom(t, 1, &other.cert, "bramble/1")
	for range 16 {
		r.shakeFrom(t, 1, &stolen.cert, "bramble/1")
	}
	if !isClosed(t, oldest, 5*time.Second) { // in ten it would end for its silence
		t.Error("17 tunnels of a node are open")
	}
	if isClosed(t, beside, 50*time.Millisecond) {
		t.Error("another node's is closed")
	}
	if _, err := other.GetNode(t.Context(), "other"); err != nil {
		t.Error(err)
	}
}
