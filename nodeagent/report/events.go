package report

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/client"
)

// Bounds of what is kept of events: the oldest go first.
const (
	maxQueued = 256
	maxKnown  = 256
	// forgetAfter is how long a repeated event counts up the same object.
	forgetAfter = 10 * time.Minute
	// maxVaried is how many events may differ in their messages alone; the others
	// are one that counts (client-go's EventCorrelator has both numbers).
	maxVaried = 10
	// An event's count is sent each time up to oftenCounted, and then every
	// countEvery: a probe that fails each second must not fill a thin link.
	// (client-go's EventSourceObjectSpamFilter has both numbers.)
	oftenCounted = 25
	countEvery   = 5 * time.Minute
)

// combined begins the message of an event that stands for several.
const combined = "(combined from similar events): "

// Component is who this node's events and managed fields are from.
const Component = "bramble-agent"

// EventServer is what the server does with events; *client.Client is one.
type EventServer interface {
	CreateEvent(ctx context.Context, e *corev1.Event) (*corev1.Event, error)
	PatchEvent(ctx context.Context, namespace, name string, p client.Patch) (*corev1.Event, error)
}

// Events sends the events of the node's pods. Equal ones within ten minutes are one
// object that counts, and so are those that differ in their messages alone, where
// there are many: a pod whose answers are never the same must not push out what is
// said of others. A count that goes on is sent every countEvery. While the server is away the newest wait.
type Events struct {
	server EventServer
	node   string
	log    *slog.Logger
	wake   chan struct{}

	mu    sync.Mutex // protects what follows
	known map[eventKey]*counted
	queue []*counted // to be sent, each once
}

// counted is an event, and when it was last queued.
type counted struct {
	corev1.Event
	queued time.Time
}

type eventKey struct {
	uid, field, reason, message string
}

// NewEvents returns a recorder of events; nothing is sent before Run.
func NewEvents(server EventServer, node string, log *slog.Logger) *Events {
	return &Events{server: server, node: node, log: log, wake: make(chan struct{}, 1), known: map[eventKey]*counted{}}
}

// Pod records an event about a pod or, when container is not empty, about one of
// its containers. It does not block.
func (e *Events) Pod(pod *corev1.Pod, container, eventType, reason, message string) {
	ref := corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		ResourceVersion: pod.ResourceVersion,
	}
	if container != "" {
		ref.FieldPath = "spec.containers{" + container + "}"
	}
	e.record(ref, eventType, reason, message)
}

func (e *Events) record(ref corev1.ObjectReference, eventType, reason, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := metav1.NewTime(time.Now())
	key := eventKey{string(ref.UID), ref.FieldPath, reason, message}
	event := e.recent(key, now)
	if event == nil && e.varied(key, now) >= maxVaried {
		key.message, message = "", combined+message
		event = e.recent(key, now)
	}
	if event != nil {
		event.Count++
		event.LastTimestamp, event.Message = now, message
		if event.Count > oftenCounted && now.Sub(event.queued) < countEvery {
			return
		}
	} else {
		event = e.make(ref, eventType, reason, message, now)
		e.forgetOldest()
		e.known[key] = event
	}
	event.queued = now.Time
	e.enqueue(event)
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// recent is the event that counts those of a key, or nil. Caller holds mu.
func (e *Events) recent(key eventKey, now metav1.Time) *counted {
	if event := e.known[key]; event != nil && now.Sub(event.LastTimestamp.Time) < forgetAfter {
		return event
	}
	return nil
}

// varied counts the recent events that differ from key in their messages alone.
// Caller holds mu.
func (e *Events) varied(key eventKey, now metav1.Time) (n int) {
	for k := range e.known {
		if k.uid == key.uid && k.field == key.field && k.reason == key.reason && k.message != "" && e.recent(k, now) != nil {
			n++
		}
	}
	return n
}

func (e *Events) make(ref corev1.ObjectReference, eventType, reason, message string, now metav1.Time) *counted {
	return &counted{Event: corev1.Event{
		TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta:     metav1.ObjectMeta{Namespace: ref.Namespace, Name: fmt.Sprintf("%s.%x", ref.Name, now.UnixNano())},
		InvolvedObject: ref, Type: eventType, Reason: reason, Message: message,
		Source:              corev1.EventSource{Component: Component, Host: e.node},
		ReportingController: Component, ReportingInstance: e.node,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}}
}

func (e *Events) forgetOldest() {
	if len(e.known) < maxKnown {
		return
	}
	var oldest eventKey
	var at time.Time
	for key, event := range e.known {
		if at.IsZero() || event.LastTimestamp.Time.Before(at) {
			oldest, at = key, event.LastTimestamp.Time
		}
	}
	delete(e.known, oldest)
}

func (e *Events) enqueue(event *counted) {
	if slices.Contains(e.queue, event) {
		return
	}
	if len(e.queue) == maxQueued {
		e.queue = e.queue[1:]
	}
	e.queue = append(e.queue, event)
}

// Run sends until ctx ends.
func (e *Events) Run(ctx context.Context) error {
	failures := 0
	for {
		wait := e.wake
		var retry <-chan time.Time
		if failures > 0 {
			wait, retry = nil, time.After(delay(failures))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-wait:
		case <-retry:
		}
		if e.flush(ctx) {
			failures = 0
		} else {
			failures++
		}
	}
}

// flush sends what is queued, and reports whether the server took it.
func (e *Events) flush(ctx context.Context) bool {
	for {
		event, sent := e.take()
		if event == nil {
			return true
		}
		if err := e.send(ctx, sent); err != nil && !refused(err) {
			e.putBack(event)
			return false
		}
	}
}

// take returns the oldest queued event and a copy for sending.
func (e *Events) take() (event *counted, sent corev1.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queue) == 0 {
		return nil, sent
	}
	event = e.queue[0]
	e.queue = e.queue[1:]
	return event, event.Event
}

// putBack queues an event again, as the oldest; a full queue has no place for it.
func (e *Events) putBack(event *counted) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queue) < maxQueued && !slices.Contains(e.queue, event) {
		e.queue = slices.Insert(e.queue, 0, event)
	}
}

func (e *Events) send(ctx context.Context, event corev1.Event) error {
	if event.Count > 1 {
		patch, err := client.MergePatch(map[string]any{"count": event.Count, "lastTimestamp": event.LastTimestamp, "message": event.Message})
		if err == nil {
			_, err = e.server.PatchEvent(ctx, event.Namespace, event.Name, patch)
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
	}
	_, err := e.server.CreateEvent(ctx, &event)
	if refused(err) {
		e.log.Debug("an event was refused", "event", event.Reason, "err", err)
	}
	return err
}

// refused reports whether the server answered, and trying again is of no use.
func refused(err error) bool {
	status, ok := err.(apierrors.APIStatus)
	return ok && status.Status().Code < 500 && !apierrors.IsTooManyRequests(err)
}
