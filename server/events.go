package server

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"bramble.dev/bramble/server/objects"
)

// Bounds of what a recorder holds: the rest is lost, as events may be.
const (
	maxQueued = 256
	maxKnown  = 256
)

// recorder writes the events of the server's controllers. Equal ones are one
// object that counts.
type recorder struct {
	registry  *objects.Registry
	kind      *objects.Kind
	component string
	log       *slog.Logger
	now       func() time.Time
	queue     chan *corev1.Event
	known     map[eventKey]string // the name of the event; run's goroutine's
}

type eventKey struct {
	about                 types.UID
	kind, reason, message string
}

func newRecorder(registry *objects.Registry, kind *objects.Kind, component string, log *slog.Logger) *recorder {
	return &recorder{
		registry: registry, kind: kind, component: component, log: log, now: time.Now,
		queue: make(chan *corev1.Event, maxQueued), known: make(map[eventKey]string),
	}
}

// Event queues an event about an object. It never blocks.
func (r *recorder) Event(about runtime.Object, kind, reason, message string) {
	obj, ok := about.(objects.Object)
	if !ok {
		return
	}
	now := r.now()
	e := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: obj.GetNamespace(),
			Name:      fmt.Sprintf("%s.%x", obj.GetName(), now.UnixNano()),
		},
		InvolvedObject: r.reference(obj),
		Type:           kind, Reason: reason, Message: message,
		Source:              corev1.EventSource{Component: r.component},
		ReportingController: r.component,
		FirstTimestamp:      metav1.NewTime(now), LastTimestamp: metav1.NewTime(now),
		Count: 1,
	}
	if e.Namespace == "" {
		e.Namespace = metav1.NamespaceDefault
	}
	select {
	case r.queue <- e:
	default:
	}
}

func (r *recorder) reference(obj objects.Object) corev1.ObjectReference {
	ref := corev1.ObjectReference{
		Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
	}
	ref.APIVersion, ref.Kind = obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	return ref
}

// run writes what is queued until ctx ends.
func (r *recorder) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-r.queue:
			if err := r.write(ctx, e); err != nil && ctx.Err() == nil {
				r.log.Warn("event lost", "reason", e.Reason, "object", e.InvolvedObject.Name, "err", err)
			}
		}
	}
}

func (r *recorder) write(ctx context.Context, e *corev1.Event) error {
	key := eventKey{e.InvolvedObject.UID, e.Type, e.Reason, e.Message}
	opts := objects.WriteOptions{FieldManager: r.component}
	if name, ok := r.known[key]; ok {
		_, err := r.registry.Update(ctx, r.kind, "", e.Namespace, name, func(current objects.Object) (objects.Object, error) {
			old := current.(*corev1.Event)
			old.Count++
			old.LastTimestamp = e.LastTimestamp
			return old, nil
		}, opts)
		if !apierrors.IsNotFound(err) {
			return err
		}
	}
	if len(r.known) >= maxKnown {
		clear(r.known)
	}
	_, err := r.registry.Create(ctx, r.kind, e.Namespace, e, opts)
	if err == nil {
		r.known[key] = e.Name
	}
	return err
}
