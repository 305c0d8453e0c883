package stream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/stream"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// node is a fake of all that a Handler asks.
type node struct {
	text   string
	err    error // after text
	asked  stream.LogOptions
	dialed netip.AddrPort
	pod    net.Conn // what Dial returns; nil: an echo
	gone   chan struct{}
	deaf   bool // the containers have no stdin
	run    func(ctx context.Context, command []string, s container.Streams) (int, error)
}

func (n *node) Container(_ context.Context, _, pod, container string, previous bool) (string, error) {
	if pod != "web" {
		return "", apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, pod)
	}
	if previous {
		return container + "-before", nil
	}
	return container, nil
}

func (n *node) Running(_ context.Context, _, pod, name string) (container.Target, error) {
	if pod != "web" {
		return container.Target{}, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, pod)
	}
	return container.Target{ID: name, Spec: &corev1.Container{Name: name, Stdin: !n.deaf}}, nil
}

func (n *node) Pod(_ context.Context, _, name string) (stream.Pod, error) {
	if name != "web" {
		return stream.Pod{}, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, name)
	}
	return stream.Pod{UID: "u1", Address: netip.MustParseAddr("10.100.0.2"), Gone: n.gone}, nil
}

func (n *node) ExecStreams(ctx context.Context, t container.Target, command []string, s container.Streams) (int, error) {
	return n.run(ctx, command, s)
}

func (n *node) Attach(ctx context.Context, t container.Target, s container.Streams) error {
	_, err := n.run(ctx, nil, s)
	return err
}

func (n *node) Logs(_ context.Context, id string, o stream.LogOptions, w io.Writer) error {
	n.asked = o
	if _, err := io.WriteString(w, id+": "+n.text); err != nil {
		return err
	}
	return n.err
}

func (n *node) Dial(_ context.Context, address netip.AddrPort) (net.Conn, error) {
	n.dialed = address
	if n.pod != nil {
		return n.pod, nil
	}
	ours, theirs := net.Pipe()
	go func() {
		_, _ = io.Copy(theirs, theirs) // an echo
		_ = theirs.Close()
	}()
	return ours, nil
}

func (n *node) handler() http.Handler {
	h := &stream.Handler{
		Pods: n, Logs: n, Commands: n, Dialer: n, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler),
		Mine: func(a netip.Addr) bool { return a == netip.MustParseAddr("10.100.0.2") },
	}
	return h.Routes()
}

func (n *node) get(path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	n.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func TestLogs(t *testing.T) {
	for query, want := range map[string]stream.LogOptions{
		"":                                  {Tail: -1},
		"?follow=true&timestamps=true":      {Tail: -1, Follow: true, Timestamps: true},
		"?tailLines=0":                      {Tail: 0},
		"?sinceSeconds=60":                  {Tail: -1, Since: now.Add(-time.Minute)},
		"?sinceTime=2026-01-01T00:00:00Z":   {Tail: -1, Since: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)},
		"?sinceSeconds=9223372036854775807": {Tail: -1, Since: now.Add(-1 << 32 * time.Second)},
	} {
		n := &node{text: "hello"}
		w := n.get("/containerLogs/default/web/main" + query)
		if w.Code != http.StatusOK || w.Body.String() != "main: hello" {
			t.Errorf("%s: %d %q", query, w.Code, w.Body)
		}
		if diff := cmp.Diff(want, n.asked); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
	n := &node{text: "hello"}
	if w := n.get("/containerLogs/default/web/main?previous=true&limitBytes=13"); w.Body.String() != "main-before: " {
		t.Errorf("13 bytes of the one before are %q", w.Body)
	}
}

func TestRefusals(t *testing.T) {
	for path, want := range map[string]int{
		"/containerLogs/default/gone/main":              404,
		"/containerLogs/default/web/main?tailLines=-1":  400,
		"/containerLogs/default/web/main?limitBytes=0":  400,
		"/containerLogs/default/web/main?sinceTime=now": 400,
		"/dial":                       400,
		"/dial?address=10.100.0.2":    400,
		"/dial?address=10.100.9.9:80": 400,
		"/dial?address=127.0.0.1:22":  400,
	} {
		w := new(node).get(path)
		var status metav1.Status
		if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil || w.Code != want || status.Message == "" || status.Kind != "Status" {
			t.Errorf("%s: %d %s, want a Status of %d", path, w.Code, w.Body, want)
		}
	}
}

// TestABrokenLogIsNotTakenForTheWhole holds that a log that ends by an error
// ends the connection too.
func TestABrokenLogIsNotTakenForTheWhole(t *testing.T) {
	n := &node{text: "half", err: io.ErrUnexpectedEOF}
	server := httptest.NewServer(n.handler())
	defer server.Close()
	response, err := server.Client().Get(server.URL + "/containerLogs/default/web/main")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if data, err := io.ReadAll(response.Body); err == nil {
		t.Errorf("the client takes %q for the whole log", data)
	}
}

// halfway is a connection that can be closed one way alone, and notes its end.
type halfway struct {
	net.Conn
	closed func()
}

func (h halfway) CloseWrite() error { return nil }

func (h halfway) Close() error {
	h.closed()
	return h.Conn.Close()
}

// TestASilentPodDoesNotOutliveItsClient, whose stream would stay for ever.
func TestASilentPodDoesNotOutliveItsClient(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	closed, done := context.WithCancel(t.Context())
	server := httptest.NewServer((&node{pod: halfway{ours, done}}).handler())
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET /dial?address=10.100.0.2:80 HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\nhi"); err != nil {
		t.Fatal(err)
	}
	if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil { // unread, it would make the end a reset
		t.Fatal(err)
	}
	if _, err := io.ReadFull(theirs, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	select {
	case <-closed.Done():
	case <-time.After(20 * time.Second):
		t.Error("the connection to the pod stays")
	}
}

// TestAttachSeesTheEndOfAClientWhoseInputNobodyWants: it stands behind that input.
func TestAttachSeesTheEndOfAClientWhoseInputNobodyWants(t *testing.T) {
	attached, ended := make(chan struct{}), make(chan struct{})
	n := &node{deaf: true, run: func(ctx context.Context, _ []string, s container.Streams) (int, error) {
		defer close(ended)
		if s.Stdin != nil {
			t.Error("a container without stdin gets one")
		}
		close(attached)
		<-ctx.Done()
		return 0, ctx.Err()
	}}
	server := httptest.NewServer(n.handler())
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	const ask = "GET /attach/default/web/c?input=1&output=1 HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n"
	frame := "\x82\x83\x00\x00\x00\x00\x00hi" // final, binary, 3 bytes, masked with zeros: stdin
	if _, err := io.WriteString(conn, ask+frame+frame); err != nil {
		t.Fatal(err)
	}
	<-attached
	conn.Close()
	select {
	case <-ended:
	case <-time.After(7 * time.Second): // a pong that nobody takes would tell, late
		t.Error("the attachment outlives its client")
		server.CloseClientConnections()
	}
}

func TestDialIsARawStream(t *testing.T) {
	n := new(node)
	server := httptest.NewServer(n.handler())
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const ask = "GET /dial?address=10.100.0.2:80 HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
	if _, err := io.WriteString(conn, ask+"early"); err != nil {
		t.Fatal(err)
	}
	const want = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\nearly"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Errorf("got %q, %v", got, err)
	}
	if n.dialed != netip.MustParseAddrPort("10.100.0.2:80") {
		t.Errorf("dialled %v", n.dialed)
	}
}

// FuzzLogQuery feeds the query of a log request: it is served or refused as 400.
func FuzzLogQuery(f *testing.F) {
	for _, seed := range []string{"follow=true", "tailLines=9&limitBytes=1", "sinceTime=2026-01-01T00:00:00Z", "sinceSeconds=-1", "a=%zz;"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		request := httptest.NewRequest(http.MethodGet, "/containerLogs/default/web/main", nil)
		request.URL = &url.URL{Path: request.URL.Path, RawQuery: query}
		w := httptest.NewRecorder()
		(&node{text: strings.Repeat("x", 100)}).handler().ServeHTTP(w, request)
		if w.Code != http.StatusOK && w.Code != http.StatusBadRequest {
			t.Errorf("%q: %d %s", query, w.Code, w.Body)
		}
	})
}
