package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// FileName is the database's name in Config.Dir.
const FileName = "bramble.db"

// Config says where a store lies and how much of the past it remembers.
type Config struct {
	Dir    string // made with mode 0700 if it is missing
	Window Window // zero: 1,000 events, 2 MiB
	// Unwatched are resources that nobody watches, nor lists in the past: of their
	// past nothing is remembered.
	Unwatched []string
	Log       *slog.Logger
}

// Window bounds what is remembered of each resource for watchers and for lists
// in the past: at most so many events with at most so many bytes of bodies.
type Window struct {
	Events, Bytes int
}

// defaultWindow is some 500 pods' status changes.
var defaultWindow = Window{Events: 1000, Bytes: 2 << 20}

// Store is an open database. Its methods are safe for concurrent use.
type Store struct {
	config Config
	db     *database // the writer's, once Open has returned
	lock   *os.File
	health health
	start  uint64 // no revision of this Open is below; constant

	mu     sync.RWMutex // protects tables and rev
	tables map[string]*table
	rev    uint64 // the newest published revision

	follows   []string // earlier epochs; constant
	confirmed bool     // protected by mu; see Lineage

	requests chan *request
	closing  chan struct{}
	once     sync.Once
	workers  sync.WaitGroup // the writer and the background check
	closed   error
}

// Open opens the database in config.Dir, making one if there is none, and reads
// it into memory. After a stop that was not clean the file is checked first. It
// fails with ErrInUse while another process has it, with ErrNewer if a newer
// version wrote it, with syscall.ENOSPC or EROFS where the disk takes nothing,
// and with ErrDamaged when its content is broken; a broken file is renamed, never
// deleted, and while it lies there without a replacement Open goes on failing.
// Call Close in the end.
func Open(ctx context.Context, config Config) (*Store, error) {
	s, err := open(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("cannot open the store in %s: %w", config.Dir, ofDisk(err))
	}
	return s, nil
}

func open(ctx context.Context, config Config) (_ *Store, err error) {
	if config.Window == (Window{}) {
		config.Window = defaultWindow
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.Chmod(config.Dir, 0o700); err != nil {
		return nil, err
	}
	s := &Store{
		config:   config,
		tables:   map[string]*table{},
		requests: make(chan *request),
		closing:  make(chan struct{}),
	}
	if s.lock, err = lockDir(config.Dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.lock.Close()
		}
	}()
	path := filepath.Join(config.Dir, FileName)
	if err := refuseEmptyStart(path); err != nil {
		return nil, err
	}
	if err := s.load(ctx, path); err != nil {
		if !isDamage(err) {
			return nil, err
		}
		aside, renameErr := setAside(path)
		if renameErr != nil {
			return nil, errors.Join(err, renameErr)
		}
		return nil, damaged(path, aside, err)
	}
	s.workers.Go(s.write)
	if s.db.unclean {
		s.workers.Go(s.checkAll)
	}
	return s, nil
}

// load opens the file, fills memory from it and begins a run.
func (s *Store) load(ctx context.Context, path string) (err error) {
	if s.db, err = openDatabase(ctx, path); err != nil {
		return err
	}
	err = s.db.load(func(e Entry) {
		e.Body.pack()
		s.table(e.Resource).rows[rowKey{e.Namespace, e.Name}] = row{e, true}
	})
	if err == nil {
		err = s.db.raiseRun()
	}
	if err != nil {
		return errors.Join(err, s.db.close())
	}
	lineage, err := s.db.lineage()
	if err != nil {
		return errors.Join(err, s.db.close())
	}
	s.follows, s.confirmed = lineage.Follows, lineage.Confirmed
	s.start = s.db.run << 32
	s.rev = s.start
	for _, t := range s.tables {
		t.floor = s.start
	}
	return nil
}

// Close ends the writer after the commits that it has taken, fails the others
// and all watchers with ErrClosed, and closes the file.
func (s *Store) Close() error {
	s.once.Do(func() {
		close(s.closing)
		s.workers.Wait()
		s.closed = errors.Join(s.db.close(), s.lock.Close())
	})
	if s.closed != nil {
		return fmt.Errorf("cannot close the store in %s: %w", s.config.Dir, s.closed)
	}
	return nil
}

// Epoch returns the database's UUID, which is made with the file.
func (s *Store) Epoch() string { return s.db.uuid }

// Revision returns the newest published revision.
func (s *Store) Revision() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.rev
}

// Get returns the current state of the object at key, if it exists.
func (s *Store) Get(key Key) (Entry, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r := s.row(key)
	return r.Entry, r.Rev != 0
}

// List returns the objects of a resource, of one namespace or ("") of all,
// sorted by namespace and name, as they were at revision at (0: now), and that
// revision. It fails with ErrCompact if at is no longer remembered, which is so
// for each revision of an earlier Open, and with ErrFuture if it is yet to come.
func (s *Store) List(resource, namespace string, at uint64) ([]Entry, uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t, ok := s.tables[resource]
	switch {
	case at > s.rev:
		return nil, 0, ErrFuture
	case at != 0 && (at < s.start || ok && at < t.floor):
		return nil, 0, ErrCompact
	case at == 0:
		at = s.rev
	}
	if !ok {
		return nil, at, nil
	}
	if at == s.rev {
		return t.list(namespace), at, nil
	}
	return t.listAt(namespace, at), at, nil
}

// table returns the resource's table, making it if needed. Caller holds mu.
func (s *Store) table(resource string) *table {
	t, ok := s.tables[resource]
	if !ok {
		window := s.config.Window
		if slices.Contains(s.config.Unwatched, resource) {
			window = Window{}
		}
		t = newTable(s.start, window)
		s.tables[resource] = t
	}
	return t
}

// row returns the current row at key or a zero one. Caller holds mu.
func (s *Store) row(key Key) row {
	if t, ok := s.tables[key.Resource]; ok {
		return t.rows[rowKey{key.Namespace, key.Name}]
	}
	return row{}
}
