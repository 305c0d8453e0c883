package rest_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/rest"
)

// TestDetachedWatchEndsWithItsClient has room for one watch.
func TestDetachedWatchEndsWithItsClient(t *testing.T) {
	f := serveIn(t, api.WithSession(t.Context()), func(c *rest.Config) {
		c.Limits = rest.Limits{InFlight: 8, Waiting: 8, Wait: time.Minute, Streams: 1}
	})
	f.must(201, "POST", configmaps, `{"metadata":{"name":"a"}}`)
	next, stop := f.follow(configmaps + "?watch=true")
	if got := names(f, next, 1); got != "ADDED a" {
		t.Errorf("got %s", got)
	}
	f.must(http.StatusTooManyRequests, "GET", configmaps+"?watch=true", "")
	if open := f.metric("bramble_server_open_requests"); open != "2" {
		t.Errorf("%s requests are open, want the watch and this one", open)
	}
	stop()
	deadline := time.After(10 * time.Second)
	for f.metric("bramble_server_open_requests") != "1" {
		select {
		case <-deadline:
			t.Fatal("the watch goes on without its client")
		case <-time.After(5 * time.Millisecond):
		}
	}
	if got := f.metric(`bramble_server_requests_total{code="200",resource="configmaps",verb="watch"}`); got != "1" {
		t.Errorf("%s watches were counted, want 1", got)
	}
	next, _ = f.follow(configmaps + "?watch=true")
	if got := names(f, next, 1); got != "ADDED a" {
		t.Errorf("the next watch got %s", got)
	}
}

func TestDetachedWatchEndsWithItsSession(t *testing.T) {
	session, end := context.WithCancel(t.Context())
	f := serveIn(t, api.WithSession(session), nil)
	f.must(201, "POST", configmaps, `{"metadata":{"name":"a"}}`)
	next, _ := f.follow(configmaps + "?watch=true")
	if got := names(f, next, 1); got != "ADDED a" {
		t.Errorf("got %s", got)
	}
	end()
	if e, ok := next(); ok {
		t.Errorf("got %+v", e)
	}
}

// TestDetachedWatchOfMuch begins with more than a chunk.
func TestDetachedWatchOfMuch(t *testing.T) {
	f := serveIn(t, api.WithSession(t.Context()), nil)
	const count = 200
	var want []string
	for i := range count {
		name := fmt.Sprintf("c%03d", i)
		f.must(201, "POST", configmaps, fmt.Sprintf(`{"metadata":{"name":%q},"data":{"k":%q}}`, name, strings.Repeat("x", 1+i*10)))
		want = append(want, "ADDED "+name)
	}
	next, _ := f.follow(configmaps + "?watch=true")
	if got := names(f, next, count); got != strings.Join(want, ", ") {
		t.Errorf("got %s", got)
	}
}

// metric is the value of a series in the server's exposition.
func (f *fixture) metric(series string) string {
	f.t.Helper()
	for line := range strings.Lines(f.must(http.StatusOK, "GET", "/metrics", "").body) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
