package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"bramble.dev/bramble/nodeagent/container"
)

// The pauses between attempts to reach Podman's events.
const (
	shortestRetry = 200 * time.Millisecond
	longestRetry  = 10 * time.Second
)

// Events tells when one of Bramble's containers has ended or was removed, by
// whomever, also where Podman has missed the end, and when the node's images
// have changed (container.ImagesChanged). Another Event without PodUID says
// that Podman is there again after it was not: anything may have changed
// meanwhile, so look at all pods. One comes first of all.
//
// While Podman's service is away, Events tries again with growing pauses. The
// channel is closed when ctx ends; the reader must read until then.
func (r *Runtime) Events(ctx context.Context) (<-chan container.Event, error) {
	events := make(chan container.Event)
	go func() { // ends with ctx; the closed channel says so
		defer close(events)
		var checks sync.WaitGroup
		checks.Go(func() { r.checkProcesses(ctx, events) })
		r.follow(ctx, events)
		checks.Wait()
	}()
	return events, nil
}

func (r *Runtime) follow(ctx context.Context, events chan<- container.Event) {
	pause := shortestRetry
	for ctx.Err() == nil {
		began := time.Now()
		heard, err := r.subscribe(ctx, events)
		if ctx.Err() != nil {
			return
		}
		if heard || time.Since(began) > longestRetry {
			pause = shortestRetry
		}
		r.config.Log.Debug("podman's events broke off", "err", err, "retry", pause)
		wait(ctx, pause)
		pause = min(2*pause, longestRetry)
	}
}

// subscribe passes events on until the stream ends, and says whether there
// were any.
func (r *Runtime) subscribe(ctx context.Context, events chan<- container.Event) (heard bool, err error) {
	// Podman sends not even a header before the first event, so that what
	// happens between the ping and the subscription is asked for by time.
	since := r.config.Now().Add(-time.Second)
	ctx, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { r.stopWhenBehind(ctx, since, stop) })
	defer watch.Wait()
	defer stop()
	ping, err := r.send(ctx, request{method: http.MethodGet, endpoint: "/_ping"})
	if err != nil {
		return false, err
	}
	ping.Body.Close()
	if !pass(ctx, events, container.Event{What: "connected"}) {
		return heard, ctx.Err()
	}
	response, err := r.send(ctx, request{method: http.MethodGet, endpoint: "/events", query: url.Values{
		"stream":  {"true"},
		"since":   {strconv.FormatInt(since.Unix(), 10)},
		"filters": {`{"type":["container","image"],"event":["died","remove","pull","tag","untag","import","loadfromarchive"]}`},
	}})
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return false, response.Process(nil)
	}
	lines := json.NewDecoder(response.Body)
	for {
		var line struct {
			Type   string
			Action string
			Actor  struct {
				ID         string
				Attributes map[string]string
			}
		}
		if err := lines.Decode(&line); err != nil {
			return heard, fmt.Errorf("the stream of events ended: %w", err)
		}
		heard = true
		if line.Type == "image" {
			if !pass(ctx, events, container.Event{What: container.ImagesChanged}) {
				return heard, ctx.Err()
			}
			continue
		}
		uid := line.Actor.Attributes[LabelPodUID]
		if uid == "" {
			continue // not ours
		}
		if !pass(ctx, events, container.Event{PodUID: uid, ContainerID: line.Actor.ID, What: line.Action}) {
			return heard, ctx.Err()
		}
	}
}

// stopWhenBehind stops a subscription when the wall clock was set to before its
// beginning: until the clock is there again, Podman would leave out all events.
func (r *Runtime) stopWhenBehind(ctx context.Context, since time.Time, stop func()) {
	ticker := time.NewTicker(checkRunning)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if r.config.Now().Round(0).Before(since.Round(0)) {
			r.config.Log.Info("the clock was set back, and podman's events are asked for anew")
			stop()
			return
		}
	}
}

func pass(ctx context.Context, events chan<- container.Event, e container.Event) bool {
	select {
	case events <- e:
		return true
	case <-ctx.Done():
		return false
	}
}
