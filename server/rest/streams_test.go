package rest_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

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
