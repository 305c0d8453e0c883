package store

// batch is the requests that share a transaction, and what they come to.
type batch struct {
	store    *Store
	requests []*request
	ops      []op
	rows     map[Key]row // what the planned operations leave
	durable  bool        // some operation writes to the disk
	trial    bool        // see whether the disk takes something
}

// op is one change that was found to hold.
type op struct {
	Event
	put, drop bool // on disk
	onDisk    bool // the disk has some state of the object afterwards
}

// plan decides which requests hold and gives their changes revisions above
// last. It returns the newest one given.
func (b *batch) plan(last uint64) uint64 {
	b.store.mu.RLock()
	defer b.store.mu.RUnlock()
	for _, r := range b.requests {
		b.trial = b.trial || r.trial
		if !b.holds(r) {
			continue
		}
		r.revs = make([]uint64, len(r.changes))
		for i, c := range r.changes {
			if c.Check {
				continue
			}
			last++
			r.revs[i] = last
			b.add(c, last)
		}
	}
	return last
}

// holds checks every revision that r asks for, and that it names no object
// twice, against the state that the batch has come to.
func (b *batch) holds(r *request) bool {
	seen := make(map[Key]bool, len(r.changes))
	for _, c := range r.changes {
		now, planned := b.row(c.Key)
		if now.Rev != c.Rev || seen[c.Key] || c.Delete && c.Rev == 0 {
			r.err, r.stale = ErrConflict, planned
			return false
		}
		seen[c.Key] = true
	}
	return true
}

func (b *batch) row(key Key) (_ row, planned bool) {
	if now, ok := b.rows[key]; ok {
		return now, true
	}
	return b.store.row(key), false
}

func (b *batch) add(c Change, rev uint64) {
	prev, _ := b.row(c.Key)
	memo := c.Memo
	if memo == nil {
		memo = &Memo{}
	}
	o := op{Event: Event{
		Type:  Modified,
		Entry: Entry{Key: c.Key, Rev: rev, Body: NewBody(c.Body(rev)), Memo: memo},
		Prev:  prev.Entry,
	}}
	if prev.Rev == 0 {
		o.Type = Added
	}
	switch {
	case c.Delete:
		o.Type = Deleted
		o.drop = prev.onDisk
		b.rows[c.Key] = row{}
	default:
		o.put = !c.Volatile
		o.onDisk = o.put || prev.onDisk
		b.rows[c.Key] = row{o.Entry, o.onDisk}
	}
	b.durable = b.durable || o.put || o.drop
	b.ops = append(b.ops, o)
}

// splitVolatile takes the requests that need no disk out of b, if others do,
// into a batch of their own that is not planned yet.
func (b *batch) splitVolatile() *batch {
	rest := &batch{store: b.store, rows: map[Key]row{}}
	if !b.durable {
		return rest
	}
	var needy []*request
	for _, r := range b.requests {
		if r.trial || !b.store.volatile(r.changes) {
			needy = append(needy, r)
			continue
		}
		r.revs, r.err, r.stale = nil, nil, false
		rest.requests = append(rest.requests, r)
	}
	b.requests = needy
	return rest
}

// volatile reports whether changes leave the disk as it is.
func (s *Store) volatile(changes []Change) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, c := range changes {
		if !c.Check && (!c.Volatile || c.Delete && s.row(c.Key).onDisk) {
			return false
		}
	}
	return true
}

// persist writes the durable operations in one transaction. Without any it
// does not touch the database.
func (b *batch) persist(db *database) error {
	if len(b.ops) > 0 {
		if err := db.reach(b.ops[len(b.ops)-1].Rev); err != nil {
			return err
		}
	}
	if !b.durable {
		return nil
	}
	return db.transact(func() error {
		for _, o := range b.ops {
			var err error
			switch {
			case o.put:
				_, err = db.put.ExecContext(db.ctx, o.Resource, o.Namespace, o.Name, int64(o.Rev), seal(o.Body.Bytes()))
			case o.drop:
				_, err = db.drop.ExecContext(db.ctx, o.Resource, o.Namespace, o.Name)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
