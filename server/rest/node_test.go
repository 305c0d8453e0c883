package rest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"bramble.dev/bramble/server/rest"
)

// node is an agent's HTTP server as the server sees it through the tunnel.
type node struct {
	server *httptest.Server
	pod    *httptest.Server // what listens at the pod's address
	asked  chan *url.URL
	more   chan string // further lines of a followed log
}

func (n *node) Transport(_ context.Context, name string) (http.RoundTripper, error) {
	if name != "n1" {
		return nil, errors.New("not connected")
	}
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		r.URL.Host = n.server.Listener.Addr().String()
		return n.server.Client().Transport.RoundTrip(r)
	}), nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func startNode(t *testing.T) *node {
	n := &node{asked: make(chan *url.URL, 10), more: make(chan string)}
	n.pod = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s auth=%q", r.Method, r.URL.RequestURI(), body, r.Header.Get("Authorization"))
	}))
	n.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.asked <- r.URL
		switch {
		case strings.HasSuffix(r.URL.Path, "/waiting"):
			http.Error(w, `container "waiting" in pod "p" is waiting to start: ContainerCreating`, http.StatusBadRequest)
		case strings.HasPrefix(r.URL.Path, "/containerLogs/"):
			n.logs(w, r)
		case r.URL.Path == "/dial":
			n.dial(t, w)
		case strings.HasPrefix(r.URL.Path, "/exec/"):
			n.exec(t, w)
		}
	}))
	t.Cleanup(func() { n.server.CloseClientConnections(); n.server.Close(); n.pod.Close() })
	return n
}

func (n *node) logs(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintln(w, "one")
	if r.URL.Query().Get("follow") != "true" {
		return
	}
	for {
		w.(http.Flusher).Flush()
		select {
		case line, ok := <-n.more:
			if !ok {
				return
			}
			fmt.Fprintln(w, line)
		case <-r.Context().Done():
			return
		}
	}
}

func (n *node) dial(t *testing.T, w http.ResponseWriter) {
	far, err := net.Dial("tcp", n.pod.Listener.Addr().String())
	if err != nil {
		t.Error(err)
		return
	}
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", "tcp")
	w.WriteHeader(http.StatusSwitchingProtocols)
	near, buffered, err := w.(http.Hijacker).Hijack() // what came early is in the buffer
	if err != nil {
		t.Error(err)
		return
	}
	done := make(chan struct{})
	go func() { _, _ = io.Copy(far, buffered); far.Close(); close(done) }()
	_, _ = io.Copy(near, far)
	near.Close()
	<-done
}

// muchSaid is what a command on the node writes before it ends.
const muchSaid = 4 << 20

// exec upgrades, says much, whatever it is sent, and ends.
func (n *node) exec(t *testing.T, w http.ResponseWriter) {
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", "websocket")
	w.WriteHeader(http.StatusSwitchingProtocols)
	conn, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	go func() { _, _ = io.Copy(io.Discard, buffered) }()
	_, _ = conn.Write(make([]byte, muchSaid))
	_ = conn.(*net.TCPConn).CloseWrite()
}

func serveWithNode(t *testing.T) (*fixture, *node) {
	n := startNode(t)
	f := serve(t, func(c *rest.Config) { c.Nodes = n })
	f.must(201, "POST", pods, `{"metadata":{"name":"p"},"spec":{"nodeName":"n1","containers":[{"name":"c","ports":[{"containerPort":8080,"name":"web"}]}]}}`)
	f.must(200, "PATCH", pods+"/p/status", `{"status":{"podIP":"10.100.0.2"}}`, "Content-Type", mergePatch)
	f.must(201, "POST", pods, `{"metadata":{"name":"two"},"spec":{"nodeName":"n1","initContainers":[{"name":"i"}],"containers":[{"name":"c"},{"name":"waiting"}]}}`)
	f.must(201, "POST", pods, `{"metadata":{"name":"loose"},"spec":{"containers":[{"name":"c"}]}}`)
	f.must(201, "POST", pods, `{"metadata":{"name":"far"},"spec":{"nodeName":"n2","containers":[{"name":"c"}]}}`)
	return f, n
}

func TestLog(t *testing.T) {
	f, n := serveWithNode(t)
	a := f.must(200, "GET", pods+"/p/log?tailLines=5&timestamps=true&insecureSkipTLSVerifyBackend=true", "")
	if a.body != "one\n" || a.header.Get("Content-Type") != "text/plain" {
		t.Errorf("got %q %v", a.body, a.header)
	}
	if asked := <-n.asked; asked.String() != "/containerLogs/default/p/c?tailLines=5&timestamps=true" {
		t.Errorf("asked %s", asked)
	}
}

func TestLogErrors(t *testing.T) {
	f, _ := serveWithNode(t)
	for path, want := range map[string]string{
		"/loose/log":                 `400 pod loose does not have a host assigned: it waits for a node (see its PodScheduled condition)`,
		"/far/log":                   `503 cannot reach node "n2" (not connected): check that the board has power and a link, and bramble-agent on it`,
		"/two/log":                   `400 a container name must be specified for pod two, choose one of: [c waiting] or one of the init containers: [i]`,
		"/two/log?container=x":       `400 container x is not valid for pod two: it has [c waiting i]`,
		"/two/log?container=waiting": "400 container \"waiting\" in pod \"p\" is waiting to start: ContainerCreating",
		"/p/log?tailLines=x":         `400 tailLines: Invalid value: "x": must be a number greater than 0`,
		"/p/log?sinceTime=yesterday": `400 sinceTime: Invalid value: "yesterday": must be a time as in RFC 3339`,
		"/p/log?follow=perhaps":      `400 follow: Invalid value: "perhaps": must be true or false`,
		"/none/log":                  `404 pods "none" not found`,
	} {
		a := f.do("GET", pods+path, "")
		if got := fmt.Sprintf("%d %s", a.code, a.message(t)); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", path, got, want)
		}
	}
}

func TestLogFollows(t *testing.T) {
	f, n := serveWithNode(t)
	resp, err := f.Client().Get(f.URL + pods + "/p/log?follow=true")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for _, want := range []string{"one", "two", "three"} {
		if want != "one" {
			n.more <- want // only after the line before was read: nothing is held back
		}
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("got %q, want %q", lines.Text(), want)
		}
	}
	close(n.more)
	if lines.Scan() {
		t.Errorf("got %q after the end", lines.Text())
	}
}

func TestProxy(t *testing.T) {
	f, n := serveWithNode(t)
	for path, want := range map[string][2]string{
		"/p/proxy/a/b?x=1":    {"/a/b?x=1", "10.100.0.2:8080"},
		"/p:9090/proxy/":      {"/", "10.100.0.2:9090"},
		"/p:web/proxy/c/":     {"/c/", "10.100.0.2:8080"},
		"/http:p:web/proxy/c": {"/c", "10.100.0.2:8080"},
	} {
		a := f.must(200, "POST", pods+path, "hello", "Authorization", "Bearer secret")
		if want := fmt.Sprintf("POST %s hello auth=\"\"", want[0]); a.body != want {
			t.Errorf("%s: got %q, want %q", path, a.body, want)
		}
		if asked := <-n.asked; asked.Query().Get("address") != want[1] {
			t.Errorf("%s: asked for %s, want %s", path, asked, want[1])
		}
	}
	if a := f.must(301, "GET", pods+"/p/proxy?x=1", ""); a.header.Get("Location") != pods+"/p/proxy/?x=1" {
		t.Errorf("redirected to %s", a.header.Get("Location"))
	}
	for path, code := range map[string]int{
		"/p:none/proxy/": 400, "/https:p:web/proxy/": 400, "/a:b:c:d/proxy/": 400,
		"/loose/proxy/": 400, "/two/proxy/": 503, "/none/proxy/": 404,
	} {
		if a := f.do("GET", pods+path, ""); a.code != code || a.at(t, "kind") != "Status" {
			t.Errorf("%s: got %d %s, want %d", path, a.code, a.body, code)
		}
	}
}

func TestProxyToNodeThatIsAway(t *testing.T) {
	f, _ := serveWithNode(t)
	f.must(200, "PATCH", pods+"/far/status", `{"status":{"podIP":"10.100.0.3"}}`, "Content-Type", mergePatch)
	a := f.must(503, "GET", pods+"/far/proxy/", "")
	if !strings.Contains(a.message(t), `cannot reach node "n2"`) {
		t.Errorf("got %s", a.body)
	}
}

func TestBinding(t *testing.T) {
	f := serve(t, nil)
	f.must(201, "POST", pods, `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c"}]}}`)
	const to = `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"p","annotations":{"a":"b"}},"target":{"kind":"Node","name":"n1"}}`
	f.must(400, "POST", pods+"/p/binding", `{"target":{"kind":"Node"}}`)
	f.must(400, "POST", pods+"/p/binding", strings.Replace(to, `"name":"p"`, `"name":"q"`, 1))
	f.must(409, "POST", pods+"/p/binding", strings.Replace(to, `"name":"p"`, `"uid":"another"`, 1))
	a := f.must(201, "POST", pods+"/p/binding", to)
	if a.at(t, "status") != "Success" {
		t.Errorf("got %s", a.body)
	}
	bound := f.must(200, "GET", pods+"/p", "")
	if bound.at(t, "spec", "nodeName") != "n1" || bound.at(t, "status", "conditions", 0, "type") != "PodScheduled" ||
		bound.at(t, "status", "conditions", 0, "status") != "True" || bound.at(t, "metadata", "annotations", "a") != "b" {
		t.Errorf("got %s", bound.body)
	}
	again := f.must(409, "POST", pods+"/p/binding", to)
	if !strings.Contains(again.message(t), `pod p is already assigned to node "n1"`) {
		t.Errorf("got %s", again.body)
	}
	f.must(404, "POST", pods+"/none/binding", to[:0]+`{"target":{"name":"n1"}}`)
}

func TestFinalizeOfNamespace(t *testing.T) {
	f := serve(t, nil)
	f.must(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"ns"}}`)
	f.must(200, "PUT", "/api/v1/namespaces/ns/finalize", `{"metadata":{"name":"ns"}}`)
	f.must(404, "PUT", "/api/v1/namespaces/ns/status", `{"metadata":{"name":"ns"}}`)
	f.must(405, "GET", "/api/v1/namespaces/ns/finalize", "")
}

// waiting is a node that takes as long to be reached as its asker's context lasts.
type waiting struct{ asked, left chan struct{} }

func (n waiting) Transport(ctx context.Context, _ string) (http.RoundTripper, error) {
	n.asked <- struct{}{}
	<-ctx.Done()
	n.left <- struct{}{}
	return nil, ctx.Err()
}

func TestWayToTheNodeIsOpenedForTheRequest(t *testing.T) {
	n := waiting{make(chan struct{}, 10), make(chan struct{}, 10)}
	f := serve(t, func(c *rest.Config) { c.Nodes = n })
	f.must(201, "POST", pods, `{"metadata":{"name":"p"},"spec":{"nodeName":"n1","containers":[{"name":"c"}]}}`)
	f.must(200, "PATCH", pods+"/p/status", `{"status":{"podIP":"10.100.0.2"}}`, "Content-Type", mergePatch)
	for _, path := range []string{"/p/log", "/p/proxy/", "/p/exec?command=ls&stdout=1", "/p/portforward"} {
		ctx, leave := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL+pods+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(path, "/log") && !strings.Contains(path, "/proxy") {
			req.Header.Set("Connection", "Upgrade")
			req.Header.Set("Upgrade", "websocket")
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if resp, err := f.Client().Do(req); err == nil {
				body, _ := io.ReadAll(resp.Body)
				t.Errorf("%s: got %s %s", path, resp.Status, body)
				resp.Body.Close()
			}
		}()
		select {
		case <-n.asked:
			leave()
			<-done
			<-n.left
		case <-done:
			leave()
			t.Errorf("%s: the way to the node was not asked for", path)
		}
	}
	f.must(400, "GET", pods+"/p/log?container=none", "")
	f.must(400, "POST", pods+"/p/exec?command=ls&stdout=1&container=none", "")
	if len(n.asked) > 0 {
		t.Error("a request that cannot be served opened the way to the node")
	}
}
