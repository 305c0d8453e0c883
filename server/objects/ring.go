package objects

import (
	"container/list"
	"context"
	"errors"
	"time"

	"bramble.dev/bramble/server/store"
)

// RingConfig says how much of a volatile kind is kept, and for how long.
type RingConfig struct {
	Kind      *Kind
	Max       int           // objects; 0: 1,000
	MaxBytes  int           // of all of them, encoded; 0: 4 MiB
	MaxAge    time.Duration // since the last write of the object, while a server ran; 0: an hour
	File      string        // keeps them over a restart; "": nothing does
	SaveEvery time.Duration // at most so often, and only after changes; 0: 5 minutes
}

// Ring bounds the objects of a volatile kind: the one that was written longest
// ago goes first. What was written after the last save is lost with a power
// cut. Load comes before Run; neither is safe for concurrent use.
type Ring struct {
	registry *Registry
	config   RingConfig

	order  *list.List // of ringItem, the oldest in front
	bytes  int        // of all items
	items  map[store.Key]*list.Element
	source *store.Watcher
	dirty  bool
	saveAt time.Time
}

type ringItem struct {
	key  store.Key
	rev  uint64
	size int       // in bytes
	seen time.Time // by the monotonic clock
}

// NewRing returns a ring that does nothing until Load or Run.
func (r *Registry) NewRing(config RingConfig) *Ring {
	if config.Max == 0 {
		config.Max = 1000
	}
	if config.MaxBytes == 0 {
		config.MaxBytes = 4 << 20
	}
	if config.MaxAge == 0 {
		config.MaxAge = time.Hour
	}
	if config.SaveEvery == 0 {
		config.SaveEvery = 5 * time.Minute
	}
	return &Ring{registry: r, config: config, order: list.New(), items: map[store.Key]*list.Element{}}
}

// Run holds the bounds until ctx ends, and then saves. It returns ctx's error,
// or why it cannot go on. It can lag behind a flood of writes by a moment.
func (g *Ring) Run(ctx context.Context) error {
	g.saveAt = time.Now().Add(g.config.SaveEvery)
	err := store.ErrCompact
	for errors.Is(err, store.ErrCompact) {
		if err = g.resume(); err == nil {
			err = g.follow(ctx)
		}
	}
	g.save()
	return err
}

// resume takes up what is stored now.
func (g *Ring) resume() error {
	entries, rev, err := g.registry.store.List(g.config.Kind.Resource(), "", 0)
	if err != nil {
		return err
	}
	stored := make(map[store.Key]bool, len(entries))
	for _, e := range entries {
		stored[e.Key] = true
		g.note(e)
	}
	for key := range g.items {
		if !stored[key] {
			g.forget(key)
		}
	}
	g.source, err = g.registry.store.Watch(g.config.Kind.Resource(), rev)
	return err
}

func (g *Ring) follow(ctx context.Context) error {
	for {
		if err := g.trim(ctx); err != nil {
			return err
		}
		if g.dirty && !time.Now().Before(g.saveAt) {
			g.save()
		}
		wait, cancel := context.WithTimeout(ctx, g.untilDue())
		events, err := g.source.Next(wait)
		cancel()
		if err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
			return err
		}
		for _, e := range events {
			g.dirty = true
			if e.Type == store.Deleted {
				g.forget(e.Key)
			} else {
				g.note(e.Entry)
			}
		}
	}
}

// note makes e the youngest, unless this revision is known.
func (g *Ring) note(e store.Entry) {
	if at := g.items[e.Key]; at != nil && at.Value.(ringItem).rev == e.Rev {
		return
	}
	g.put(ringItem{e.Key, e.Rev, e.Body.Len(), time.Now()})
}

// put makes item the youngest, in the place of what had its key.
func (g *Ring) put(item ringItem) {
	g.forget(item.key)
	g.items[item.key] = g.order.PushBack(item)
	g.bytes += item.size
}

func (g *Ring) forget(key store.Key) {
	if at := g.items[key]; at != nil {
		g.order.Remove(at)
		g.bytes -= at.Value.(ringItem).size
		delete(g.items, key)
	}
}

// trim deletes what is too old or too much.
func (g *Ring) trim(ctx context.Context) error {
	for g.order.Len() > 0 {
		oldest := g.order.Front().Value.(ringItem)
		if g.order.Len() <= g.config.Max && g.bytes <= g.config.MaxBytes && time.Since(oldest.seen) < g.config.MaxAge {
			return nil
		}
		g.forget(oldest.key) // if it was written again just now, its event is on the way
		e, ok := g.registry.store.Get(oldest.key)
		if !ok || e.Rev != oldest.rev {
			continue
		}
		_, err := g.registry.store.Commit(ctx, store.Change{
			Key: e.Key, Rev: e.Rev, Delete: true, Volatile: true,
			Body: func(rev uint64) []byte { return Restamp(e.Body.Bytes(), rev) },
		})
		if err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return nil
}

// untilDue is how long there is nothing to do if nothing is written.
func (g *Ring) untilDue() time.Duration {
	due := time.Hour
	if front := g.order.Front(); front != nil {
		due = g.config.MaxAge - time.Since(front.Value.(ringItem).seen)
	}
	if g.dirty {
		due = min(due, time.Until(g.saveAt))
	}
	return max(due, time.Millisecond)
}

// Load puts back what the last process saved, with new revisions and the ages
// that it had. A file that is missing or damaged costs only what was in it.
func (g *Ring) Load(ctx context.Context) error {
	saved, err := loadRing(g.config.File)
	if err != nil {
		g.registry.config.Log.Warn("cannot read all saved objects", "kind", g.config.Kind.Kind, "file", g.config.File, "err", err)
	}
	for _, s := range saved {
		key, ok := g.keyOf(s.Object)
		if !ok {
			continue
		}
		revs, err := g.registry.store.Commit(ctx, store.Change{
			Key: key, Volatile: true,
			Body: func(rev uint64) []byte { return Restamp(s.Object, rev) },
		})
		switch {
		case errors.Is(err, store.ErrConflict):
		case err != nil:
			return g.registry.otherError(err)
		default:
			seen := time.Now().Add(-time.Duration(s.AgeSeconds) * time.Second)
			g.put(ringItem{key, revs[0], len(s.Object), seen})
		}
	}
	return nil
}

// keyOf returns the key of an encoded object, or false if it is none of the kind.
func (g *Ring) keyOf(body []byte) (store.Key, bool) {
	obj, err := g.config.Kind.Decode(body)
	if err != nil || obj.GetName() == "" || obj.GetResourceVersion() == "" {
		return store.Key{}, false
	}
	return g.config.Kind.key(obj.GetNamespace(), obj.GetName()), true
}

// save writes the file if something changed since it was written.
func (g *Ring) save() {
	if !g.dirty || g.config.File == "" {
		return
	}
	g.dirty, g.saveAt = false, time.Now().Add(g.config.SaveEvery)
	var saved []savedObject
	for at := g.order.Front(); at != nil; at = at.Next() {
		item := at.Value.(ringItem)
		if e, ok := g.registry.store.Get(item.key); ok {
			saved = append(saved, savedObject{AgeSeconds: int64(time.Since(item.seen) / time.Second), Object: e.Body.Bytes()})
		}
	}
	if err := saveRing(g.config.File, saved); err != nil {
		g.registry.config.Log.Warn("cannot save objects", "kind", g.config.Kind.Kind, "err", err)
	}
}
