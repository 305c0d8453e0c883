package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"bramble.dev/bramble/server/objects"
)

// writeTimeout ends a stream whose client takes nothing for so long.
const writeTimeout = time.Minute

// randomWatchTimeout spreads the ends of watches, so that clients that came at
// once do not come back at once.
func randomWatchTimeout() time.Duration {
	return 30*time.Minute + rand.N(30*time.Minute)
}

// watch streams changes as JSON, one event a line, until the client goes, the
// time is over or the registry ends the watch.
func (s *server) watch(w http.ResponseWriter, r *request) error {
	f, err := accepts(r.Request, true)
	if err != nil {
		return err
	}
	opts, err := s.watchOptions(r)
	if err != nil {
		return err
	}
	timeout, err := s.watchTimeout(r.URL.Query())
	if err != nil {
		return err
	}
	changes, err := s.cfg.Registry.Watch(r.kind, r.Namespace, opts)
	if err != nil {
		return s.eventStream(w, r, f).refuse(err)
	}
	if d := s.detach(w, r.Request); d != nil {
		go d.serve(timeout, s.eventStream(d, r, f), changes)
		return nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	out := s.eventStream(w, r, f)
	out.start()
	for ctx.Err() == nil && out.step(changes) {
		changes.Wait(ctx)
	}
	return nil
}

// watchOptions reads the query of a watch.
func (s *server) watchOptions(r *request) (opts objects.WatchOptions, err error) {
	q := r.URL.Query()
	if opts.Labels, opts.Fields, err = selectors(q); err != nil {
		return opts, err
	}
	if opts.From, err = revision(q); err != nil {
		return opts, err
	}
	opts.Bookmarks = truth(q, "allowWatchBookmarks")
	match := metav1.ResourceVersionMatch(q.Get("resourceVersionMatch"))
	switch send := q.Get("sendInitialEvents"); {
	case send == "" && match != "":
		return opts, badRequest("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
	case send == "":
	case match != metav1.ResourceVersionMatchNotOlderThan:
		return opts, badRequest("sendInitialEvents requires setting resourceVersionMatch to %s", metav1.ResourceVersionMatchNotOlderThan)
	case isTrue(send):
		opts.SendInitialEvents = true
	case opts.From == 0:
		// From now on, without the state: the revision of now.
		found, err := s.cfg.Registry.List(r.Context(), r.kind, r.Namespace, objects.ListOptions{Labels: opts.Labels, Fields: opts.Fields})
		if err != nil {
			return opts, err
		}
		opts.From = found.Rev
	}
	return opts, nil
}

func (s *server) watchTimeout(q url.Values) (time.Duration, error) {
	timeout, err := timeoutSeconds(q)
	if timeout == 0 {
		timeout = s.cfg.WatchTimeout()
	}
	return timeout, err
}

// timeoutSeconds is 0 where a client sets none.
func timeoutSeconds(q url.Values) (time.Duration, error) {
	text := q.Get("timeoutSeconds")
	if text == "" {
		return 0, nil
	}
	seconds, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, badRequest("timeoutSeconds: Invalid value: %q: must be a number of seconds", text)
	}
	return time.Duration(seconds) * time.Second, nil
}

// eventStream writes one watch. It is for one goroutine at a time.
type eventStream struct {
	s       *server
	r       *request
	form    form
	w       http.ResponseWriter
	control *http.ResponseController
	columns bool // the table's columns were sent
}

func (s *server) eventStream(w http.ResponseWriter, r *request, f form) *eventStream {
	return &eventStream{s: s, r: r, form: f, w: w, control: http.NewResponseController(w)}
}

func (e *eventStream) start() {
	e.w.Header().Set("Content-Type", "application/json")
	e.w.Header().Set("Cache-Control", "no-cache, private")
	e.w.WriteHeader(http.StatusOK)
	e.flush()
}

// refuse answers a watch that cannot start. "Gone" goes as an event, as
// Kubernetes sends it; anything else is an ordinary error.
func (e *eventStream) refuse(err error) error {
	if status, _ := statusOf(err); status.Code == http.StatusGone {
		e.start()
		e.fail(err)
		return nil
	}
	return err
}

// step sends what there is, and reports whether the watch goes on.
func (e *eventStream) step(changes *objects.Watch) bool {
	events, err := changes.Ready()
	if err != nil {
		e.fail(err)
		return false
	}
	for _, event := range events {
		if err := e.send(event); err != nil {
			return false // the client is gone
		}
	}
	if len(events) > 0 {
		e.flush()
		_ = e.control.SetWriteDeadline(time.Time{}) // it is taken; HTTP/2 would end a quiet stream too
	}
	return true
}

func (e *eventStream) flush() { _ = e.control.Flush() }

func (e *eventStream) fail(err error) {
	status, known := statusOf(err)
	if !known {
		e.s.cfg.Log.Error("cannot go on with watch", "path", e.r.Path, "request", requestID(e.r.Context()), "err", err)
	}
	body, err := json.Marshal(status)
	if err != nil {
		return
	}
	_ = e.write(watch.Error, body)
	e.flush()
}

func (e *eventStream) send(event objects.WatchEvent) error {
	body := event.Body.Bytes()
	var err error
	switch {
	case e.form == formTable && event.Type == watch.Bookmark:
		body, err = e.s.tableOf(e.r, revisionMeta(event.Rev), nil, false)
	case e.form == formTable:
		body, err = e.s.tableOf(e.r, revisionMeta(event.Rev), []objects.Stored{event.Stored}, !e.columns)
		e.columns = true
	case e.form == formMetadata:
		body, err = metadataOf(body)
	}
	if err != nil {
		e.fail(err)
		return err
	}
	return e.write(event.Type, body)
}

func (e *eventStream) write(t watch.EventType, body []byte) error {
	_ = e.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer has one
	if _, err := fmt.Fprintf(e.w, `{"type":%q,"object":`, t); err != nil {
		return err
	}
	if _, err := e.w.Write(bytes.TrimRight(body, "\n")); err != nil {
		return err
	}
	_, err := e.w.Write([]byte("}\n"))
	return err
}
