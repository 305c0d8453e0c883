package rest_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"bramble.dev/bramble/server/rest"
)

// readers may get all and create nothing.
type readers struct{ users }

func (readers) Authorize(_ context.Context, a attributes) (bool, string, error) {
	return a.Verb == "get", "", nil
}

// A WebSocket's GET does what a POST does, and needs as much.
func TestStreamsNeedCreate(t *testing.T) {
	f := serve(t, func(c *rest.Config) { c.Authorizer = readers{} })
	for _, path := range []string{"/exec?command=true&stdout=true", "/portforward"} {
		a := f.must(http.StatusForbidden, "GET", "/api/v1/namespaces/default/pods/web"+path, "")
		if !strings.Contains(a.body, "cannot create resource") {
			t.Errorf("%s: %s", path, a.body)
		}
	}
}

func TestStreamsThatCannotBe(t *testing.T) {
	f := serve(t, nil)
	for query, want := range map[string]string{
		"stdout=true":                 "command: Required value",
		"command=true":                "at least 1 of stdin, stdout, stderr",
		"command=true&stdout=perhaps": "stdout: Invalid value",
	} {
		a := f.must(http.StatusBadRequest, "POST", "/api/v1/namespaces/default/pods/web/exec?"+query, "")
		if !strings.Contains(a.body, want) {
			t.Errorf("%s: %s, want %s", query, a.body, want)
		}
	}
	f.must(http.StatusNotFound, "POST", "/api/v1/namespaces/default/pods/web/exec?command=true&stdout=true", "")
}

// A client that still sends when the command has ended, a ping or input, gets all
// that the command wrote.
func TestTheEndOfAStreamArrives(t *testing.T) {
	f, n := serveWithNode(t)
	for range 10 {
		client, err := net.Dial("tcp", f.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		fmt.Fprintf(client, "GET %s/p/exec?command=cat&stdout=true HTTP/1.1\r\nHost: s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", pods)
		<-n.asked
		sends := make(chan struct{})
		go func() {
			defer close(sends)
			for {
				if _, err := client.Write(make([]byte, 1024)); err != nil {
					return
				}
			}
		}()
		from := bufio.NewReader(client)
		answer, err := http.ReadResponse(from, nil)
		if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("answered %v, %v", answer, err)
		}
		if got, err := io.Copy(io.Discard, from); got != muchSaid || err != nil {
			t.Errorf("%d bytes arrive of %d: %v", got, muchSaid, err)
		}
		client.Close()
		<-sends
	}
}

// unwilling is a node's stream that takes nothing and says nothing until it is closed.
type unwilling struct {
	closed chan struct{}
	close  func()
}

func newUnwilling() unwilling {
	closed := make(chan struct{})
	return unwilling{closed, sync.OnceFunc(func() { close(closed) })}
}

func (s unwilling) Read([]byte) (int, error)  { <-s.closed; return 0, net.ErrClosed }
func (s unwilling) Write([]byte) (int, error) { <-s.closed; return 0, net.ErrClosed }
func (s unwilling) Close() error              { s.close(); return nil }

// A client that leaves while the node takes nothing of what it sent is noticed.
func TestAStreamEndsWithAClientThatIsBackedUp(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ours, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		rest.Splice(ours, newUnwilling(), 10*time.Millisecond)
	}()
	if _, err := client.Write(make([]byte, 100_000)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
		t.Fatal("a client that waits is cut off")
	case <-time.After(100 * time.Millisecond):
	}
	client.Close()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the stream outlives its client")
	}
}
