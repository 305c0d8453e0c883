package objects

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	"bramble.dev/bramble/server/store"
)

// WatchOptions say what to watch. Nil selectors select everything.
type WatchOptions struct {
	Labels labels.Selector
	Fields fields.Selector
	// From is the revision after which events are wanted; 0: the present state
	// as Added events, and what follows it.
	From uint64
	// SendInitialEvents starts with the present state, which is not older than
	// From, and a Bookmark with the annotation k8s.io/initial-events-end.
	SendInitialEvents bool
	Bookmarks         bool // from time to time, when the revision has moved
}

// WatchEvent is one change in a selection: Added also when an object comes into
// it, Deleted also when it leaves. Deleted has the last state that was in the
// selection, with the revision of the deletion. A Bookmark's object has
// nothing but its revision.
type WatchEvent struct {
	Type watch.EventType
	Stored
}

// Watch is a running watch.
type Watch struct {
	events chan WatchEvent
	stop   context.CancelFunc
	done   chan struct{}
	err    error // set before events is closed
}

// Events returns the channel of events. It is closed when the watch ends.
func (w *Watch) Events() <-chan WatchEvent { return w.events }

// Err says, once Events is closed, why: nil after Stop or the context's end,
// else a StatusError: 410 when the reader was too slow and must list again.
func (w *Watch) Err() error { return w.err }

// Stop ends the watch and waits for its goroutine.
func (w *Watch) Stop() {
	w.stop()
	<-w.done
}

// Watch begins a watch of a namespace, or of all when it is "". It ends with
// ctx or Stop. It fails as List does; From takes the place of At.
func (r *Registry) Watch(ctx context.Context, k *Kind, namespace string, opts WatchOptions) (*Watch, error) {
	s, err := newSelection(k, namespace, opts.Labels, opts.Fields)
	if err != nil {
		return nil, err
	}
	source, initial, err := r.openWatch(k, namespace, opts)
	if err != nil {
		return nil, r.readError(opts.From, err)
	}
	ctx, stop := context.WithCancel(ctx)
	w := &Watch{events: make(chan WatchEvent, 16), stop: stop, done: make(chan struct{})}
	run := watchRun{Watch: w, registry: r, selection: s, source: source, options: opts}
	go run.run(ctx, initial) // ends with ctx; Stop waits for it
	return w, nil
}

// openWatch returns the source of events and the state to send first.
func (r *Registry) openWatch(k *Kind, namespace string, opts WatchOptions) (*store.Watcher, []store.Entry, error) {
	if opts.From != 0 && !opts.SendInitialEvents {
		source, err := r.store.Watch(k.Resource(), opts.From)
		return source, nil, err
	}
	if opts.From > r.store.Revision() {
		return nil, nil, store.ErrFuture
	}
	for {
		initial, rev, err := r.store.List(k.Resource(), namespace, 0)
		if err != nil {
			return nil, nil, err
		}
		source, err := r.store.Watch(k.Resource(), rev)
		if !errors.Is(err, store.ErrCompact) { // a flood of writes came between the two
			return source, initial, err
		}
	}
}

// watchRun is the goroutine of a Watch.
type watchRun struct {
	*Watch
	registry  *Registry
	selection selection
	source    *store.Watcher
	options   WatchOptions
	marked    uint64 // the revision of the last bookmark
}

func (w *watchRun) run(ctx context.Context, initial []store.Entry) {
	defer close(w.done)
	defer w.stop()
	defer close(w.events)
	if w.sendInitial(ctx, initial) != nil {
		return
	}
	initial = nil // not to be kept alive by this goroutine
	for {
		if err := w.follow(ctx); err != nil {
			if ctx.Err() == nil {
				w.err = w.registry.readError(w.source.Revision(), err)
			}
			return
		}
	}
}

func (w *watchRun) sendInitial(ctx context.Context, initial []store.Entry) error {
	for _, e := range initial {
		if w.selection.has(e) {
			if err := w.send(ctx, watch.Added, storedOf(e)); err != nil {
				return err
			}
		}
	}
	w.marked = w.source.Revision()
	if w.options.SendInitialEvents {
		return w.send(ctx, watch.Bookmark, w.bookmark(true))
	}
	return nil
}

// follow sends the next events, or a bookmark when there are none for a while.
func (w *watchRun) follow(ctx context.Context) error {
	wait, cancel := ctx, func() {}
	if w.options.Bookmarks {
		wait, cancel = context.WithTimeout(ctx, w.registry.config.BookmarkEvery)
	}
	events, err := w.source.Next(wait)
	cancel()
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		if w.source.Revision() == w.marked {
			return nil
		}
		w.marked = w.source.Revision()
		return w.send(ctx, watch.Bookmark, w.bookmark(false))
	}
	for _, e := range events {
		if t, s := w.translate(e); t != "" {
			if err := w.send(ctx, t, s); err != nil {
				return err
			}
		}
	}
	return err
}

// translate says what e is to this selection; "" when it does not concern it.
func (w *watchRun) translate(e store.Event) (watch.EventType, Stored) {
	was := w.selection.has(e.Prev)
	is := e.Type != store.Deleted && w.selection.has(e.Entry)
	switch {
	case is && was:
		return watch.Modified, storedOf(e.Entry)
	case is:
		return watch.Added, storedOf(e.Entry)
	case was && e.Type == store.Deleted:
		return watch.Deleted, storedOf(e.Entry)
	case was:
		return watch.Deleted, Stored{Rev: e.Rev, Body: Restamp(e.Prev.Body, e.Rev)}
	}
	return "", Stored{}
}

func (w *watchRun) send(ctx context.Context, t watch.EventType, s Stored) error {
	select {
	case w.events <- WatchEvent{t, s}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *watchRun) bookmark(initialEnd bool) Stored {
	annotations := ""
	if initialEnd {
		annotations = fmt.Sprintf(`,"annotations":{%q:"true"}`, metav1.InitialEventsAnnotationKey)
	}
	rev, k := w.source.Revision(), w.selection.kind
	return Stored{Rev: rev, Body: fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"%s}}`,
		k.Kind, k.GroupVersion().String(), rev, annotations)}
}
