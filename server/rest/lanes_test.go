package rest_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"bramble.dev/bramble/server/rest"
)

// stuck is a server with a route on which requests stay until release.
func stuck(t *testing.T, limits rest.Limits) (f *fixture, entered chan struct{}, release func()) {
	entered, held := make(chan struct{}, 100), make(chan struct{})
	f = serve(t, func(c *rest.Config) {
		c.Limits = limits
		c.Routes = []rest.Route{{Path: "/stay", Public: true, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			entered <- struct{}{}
			<-held
		})}}
	})
	release = sync.OnceFunc(func() { close(held) })
	t.Cleanup(release)
	return f, entered, release
}

// TestAFloodKeepsToItsLane: what is over a user's limit gets a 429, and others
// do not notice.
func TestAFloodKeepsToItsLane(t *testing.T) {
	f, entered, release := stuck(t, rest.Limits{InFlight: 2, Wait: time.Hour, Streams: 1})
	codes := make(chan int, 2)
	for range 2 {
		go func() { codes <- f.do("GET", "/stay", "", "Test-User", "flood").code }()
		<-entered
	}
	refused := f.must(http.StatusTooManyRequests, "GET", configmaps, "", "Test-User", "flood")
	if refused.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After is %q", refused.header.Get("Retry-After"))
	}
	f.must(http.StatusOK, "GET", configmaps, "", "Test-User", "kitchen")
	release()
	for range 2 {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("a request within the limits got %d", code)
		}
	}
	f.must(http.StatusOK, "GET", configmaps, "", "Test-User", "flood")
}

// TestStrangersHaveALaneForEachAddress: who fills that of one address keeps nobody of
// another from joining.
func TestStrangersHaveALaneForEachAddress(t *testing.T) {
	f, entered, release := stuck(t, rest.Limits{InFlight: 1, Wait: time.Hour, Streams: 1})
	code := make(chan int)
	go func() { code <- f.do("POST", "/stay", "", "Test-User", "none").code }()
	<-entered
	f.must(http.StatusTooManyRequests, "GET", "/version", "", "Test-User", "none")
	away := http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext}}
	defer away.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.URL+"/version", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Test-User", "none")
	resp, err := away.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("from another address: %s", resp.Status)
	}
	release()
	if got := <-code; got != http.StatusOK {
		t.Errorf("the one under way got %d", got)
	}
}

func TestRequestsWaitTheirTurn(t *testing.T) {
	f, entered, release := stuck(t, rest.Limits{InFlight: 1, Waiting: 10, Wait: time.Hour, Streams: 1})
	codes := make(chan int, 11)
	go func() { codes <- f.do("GET", "/stay", "").code }()
	<-entered
	for range 10 {
		go func() { codes <- f.do("GET", configmaps, "").code }()
	}
	release()
	for range 11 {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("one that waited got %d", code)
		}
	}
}

func TestWaitingEnds(t *testing.T) {
	f, entered, release := stuck(t, rest.Limits{InFlight: 1, Waiting: 1, Wait: time.Millisecond, Streams: 1})
	code := make(chan int)
	go func() { code <- f.do("GET", "/stay", "").code }()
	<-entered
	a := f.must(http.StatusTooManyRequests, "GET", configmaps, "")
	if want := `1 requests of user "admin" are under way, and none ended in 1ms`; !strings.Contains(a.message(t), want) {
		t.Errorf("got %s", a.body)
	}
	release()
	if got := <-code; got != http.StatusOK {
		t.Errorf("the one under way got %d", got)
	}
}

func TestStreamsAreCounted(t *testing.T) {
	f := serve(t, func(c *rest.Config) { c.Limits = rest.Limits{InFlight: 1, Waiting: 1, Wait: time.Hour, Streams: 2} })
	ctx, cancel := context.WithCancel(t.Context())
	for range 2 {
		req, err := http.NewRequestWithContext(ctx, "GET", f.URL+configmaps+"?watch=1", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
	}
	f.must(http.StatusTooManyRequests, "GET", configmaps+"?watch=1", "")
	f.must(http.StatusOK, "GET", configmaps, "") // a lane of its own
	cancel()
	for f.do("GET", configmaps+"?watch=1&timeoutSeconds=1", "").code == http.StatusTooManyRequests {
		runtime.Gosched()
	}
}

// TestListsShareTheirBodies: a list costs a piece of memory, however long it is
// and however many read it at once.
func TestListsShareTheirBodies(t *testing.T) {
	f := serve(t, nil)
	for i := range 20 {
		f.must(http.StatusCreated, "POST", configmaps, fmt.Sprintf(`{"metadata":{"name":"a%d"},"data":{"k":%q}}`, i, strings.Repeat("x", 500_000)))
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var responses []*http.Response
	for range 30 { // 300 MB, of which nothing is read
		req, err := http.NewRequestWithContext(t.Context(), "GET", f.URL+configmaps, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		responses = append(responses, resp)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 64<<20 {
		t.Errorf("30 unread lists of 10 MB hold %d MB", grown>>20)
	}
	for _, resp := range responses {
		_ = resp.Body.Close()
	}
}
