package objects

import (
	"context"
	"errors"
	"fmt"
	"time"

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

// Watch is a position in the changes of a selection. It needs no closing and is for
// one goroutine: a server may have thousands of them that wait.
type Watch struct {
	registry  *Registry
	selection selection
	source    *store.Watcher
	options   WatchOptions
	initial   []store.Entry // to be sent first
	begun     bool          // that was sent
	known     uint64        // the revision that the reader knows of, by an event or a bookmark
	mark      time.Time     // when the next bookmark is due
}

// Watch begins a watch of a namespace, or of all when it is "". It fails as List
// does; From takes the place of At.
func (r *Registry) Watch(k *Kind, namespace string, opts WatchOptions) (*Watch, error) {
	s, err := newSelection(k, namespace, opts.Labels, opts.Fields)
	if err != nil {
		return nil, err
	}
	source, initial, err := r.openWatch(k, namespace, opts)
	if err != nil {
		return nil, r.readError(opts.From, err)
	}
	return &Watch{registry: r, selection: s, source: source, options: opts, initial: initial, known: opts.From}, nil
}

// Next blocks until there are events and returns some of them, oldest first. It
// fails with ctx's error, or with a StatusError: 410 when the reader was too slow
// and must list again.
func (w *Watch) Next(ctx context.Context) ([]WatchEvent, error) {
	for ctx.Err() == nil {
		events, err := w.Ready()
		if err != nil || len(events) > 0 {
			return events, err
		}
		w.Wait(ctx)
	}
	return nil, ctx.Err()
}

// Wait blocks until there is something for Ready to look at, or until ctx ends. Unlike
// Ready it needs little stack, which counts where thousands wait.
func (w *Watch) Wait(ctx context.Context) {
	if !w.begun {
		return
	}
	if w.options.Bookmarks {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, w.mark)
		defer cancel()
	}
	_ = w.source.Wait(ctx) // Ready says what came
}

// Each calls do for every event until ctx ends, and returns nil then. Other errors
// are Next's, or do's.
func (w *Watch) Each(ctx context.Context, do func(WatchEvent) error) error {
	for {
		events, err := w.Next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range events {
			if err := do(e); err != nil {
				return err
			}
		}
	}
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

// Ready is Next without waiting: there may be no events.
func (w *Watch) Ready() ([]WatchEvent, error) {
	if !w.begun {
		return w.begin(), nil
	}
	changes, err := w.source.Ready()
	if err != nil {
		return nil, w.registry.readError(w.source.Revision(), err)
	}
	var events []WatchEvent
	for _, e := range changes {
		if t, s := w.translate(e); t != "" {
			events, w.known = append(events, WatchEvent{t, s}), e.Rev
		}
	}
	if w.options.Bookmarks && !time.Now().Before(w.mark) {
		events = w.addBookmark(events)
	}
	return events, nil
}

// addBookmark appends a bookmark, if the revision has moved since the reader last
// heard of one: also where changes come all the time, but none to this selection.
func (w *Watch) addBookmark(events []WatchEvent) []WatchEvent {
	w.mark = time.Now().Add(w.registry.config.BookmarkEvery)
	if w.source.Revision() == w.known {
		return events
	}
	w.known = w.source.Revision()
	return append(events, WatchEvent{watch.Bookmark, w.bookmark(false)})
}

// begin returns a part of the present state, and behind the last its bookmark.
func (w *Watch) begin() []WatchEvent {
	var events []WatchEvent
	part := w.initial[:min(len(w.initial), entriesPerLook)]
	for _, e := range part {
		if w.selection.has(e) {
			events = append(events, WatchEvent{watch.Added, storedOf(e)})
		}
	}
	if w.initial = w.initial[len(part):]; len(w.initial) > 0 {
		return events
	}
	w.initial, w.begun = nil, true // not to be kept alive by the watch
	w.mark = time.Now().Add(w.registry.config.BookmarkEvery)
	if w.options.SendInitialEvents {
		events = append(events, WatchEvent{watch.Bookmark, w.bookmark(true)})
		w.known = w.source.Revision()
	}
	return events
}

// translate says what e is to this selection; "" when it does not concern it.
func (w *Watch) translate(e *store.Event) (watch.EventType, Stored) {
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
		return watch.Deleted, Stored{Rev: e.Rev, Body: store.NewBody(Restamp(e.Prev.Body.Bytes(), e.Rev))}
	}
	return "", Stored{}
}

func (w *Watch) bookmark(initialEnd bool) Stored {
	annotations := ""
	if initialEnd {
		annotations = fmt.Sprintf(`,"annotations":{%q:"true"}`, metav1.InitialEventsAnnotationKey)
	}
	rev, k := w.source.Revision(), w.selection.kind
	return Stored{Rev: rev, Body: store.NewBody(fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"%s}}`,
		k.Kind, k.GroupVersion().String(), rev, annotations))}
}
