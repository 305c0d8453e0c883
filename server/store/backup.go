package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
)

// runsPerRestore is how far a restore moves the run number on: clients of the
// database that is lost may have seen revisions of as many starts after the
// backup.
const runsPerRestore = 1 << 16

// maxFollows is how many earlier epochs a database remembers.
const maxFollows = 16

// Lineage is where a database comes from.
type Lineage struct {
	Epoch   string   // this database's UUID
	Follows []string // of those whose backups it is, the newest first
	// Confirmed says that a person has said that this database takes the place
	// of those. It is true where there are none.
	Confirmed bool
}

// Lineage returns where the database comes from.
func (s *Store) Lineage() Lineage {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return Lineage{Epoch: s.db.uuid, Follows: s.follows, Confirmed: s.confirmed}
}

// ConfirmRestore makes Lineage's Confirmed true, durably; it is so when nil is
// returned. It changes nothing where it is so already.
func (s *Store) ConfirmRestore(ctx context.Context) error {
	conn, err := s.db.pool.Conn(ctx)
	if err != nil {
		return fmt.Errorf("cannot confirm the restore: %w", err)
	}
	defer conn.Close()
	// A connection of its own, beside the writer's: it waits for that one's transaction.
	for _, statement := range []string{"PRAGMA busy_timeout = 5000", "PRAGMA synchronous = FULL", "DELETE FROM meta WHERE name = 'unconfirmed'"} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("cannot confirm the restore: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confirmed = true
	return nil
}

// Backup writes what is committed now to a new file at path, which must not
// exist. Writers are not held up.
func (s *Store) Backup(ctx context.Context, path string) error {
	conn, err := s.db.pool.Conn(ctx)
	if err != nil {
		return fmt.Errorf("cannot back up to %s: %w", path, err)
	}
	defer conn.Close()
	if _, err := prepareFile(path); err != nil { // with its final mode
		return fmt.Errorf("cannot back up to %s: %w", path, err)
	}
	if _, err := conn.ExecContext(ctx, "VACUUM INTO ?", path); err != nil {
		return fmt.Errorf("cannot back up to %s: %w", path, err)
	}
	return nil
}

// Restore makes the database in dir, which is a backup, ready for Open: it is
// checked in full, gets an epoch of its own, and everything in it gets a
// revision past all that anybody may have seen; restamp puts it into a body. It
// fails with ErrInUse, ErrNewer and ErrDamaged as Open does, and leaves the file
// where it is.
func Restore(ctx context.Context, dir string, restamp func(body []byte, rev uint64) []byte) (Lineage, error) {
	lineage, err := restore(ctx, dir, restamp)
	if err != nil {
		return lineage, fmt.Errorf("cannot restore the database in %s: %w", dir, err)
	}
	return lineage, nil
}

func restore(ctx context.Context, dir string, restamp func([]byte, uint64) []byte) (_ Lineage, err error) {
	lock, err := lockDir(dir)
	if err != nil {
		return Lineage{}, err
	}
	defer lock.Close()
	d, err := openDatabase(ctx, filepath.Join(dir, FileName))
	if err != nil {
		return Lineage{}, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	if err := check(ctx, d.conn, "integrity_check(1)"); err != nil {
		return Lineage{}, err
	}
	var entries []Entry
	if err := d.load(func(e Entry) { entries = append(entries, e) }); err != nil {
		return Lineage{}, err
	}
	return d.succeed(entries, restamp)
}

// succeed gives the database its own epoch, and its entries new revisions.
func (d *database) succeed(entries []Entry, restamp func([]byte, uint64) []byte) (Lineage, error) {
	var before string
	var run uint64
	row := d.conn.QueryRowContext(d.ctx, "SELECT u.value, r.value FROM meta u, meta r WHERE u.name = 'uuid' AND r.name = 'run'")
	if err := row.Scan(&before, &run); err != nil {
		return Lineage{}, fmt.Errorf("%w: it has no epoch (%v)", ErrDamaged, err)
	}
	run += runsPerRestore
	l, err := d.lineage()
	if err != nil {
		return l, err
	}
	l = Lineage{Epoch: newUUID(), Follows: append([]string{before}, l.Follows...)}
	l.Follows = l.Follows[:min(len(l.Follows), maxFollows)]
	follows, err := json.Marshal(l.Follows)
	if err != nil {
		return l, err
	}
	err = d.transact(func() error {
		for i, e := range entries {
			rev := run<<32 + uint64(i) + 1
			if _, err := d.put.Exec(e.Resource, e.Namespace, e.Name, int64(rev), seal(restamp(e.Body.Bytes(), rev))); err != nil {
				return err
			}
		}
		return errors.Join(
			d.exec("UPDATE meta SET value = ? WHERE name = 'uuid'", l.Epoch),
			d.exec("UPDATE meta SET value = ? WHERE name = 'run'", int64(run)),
			d.exec("INSERT OR REPLACE INTO meta VALUES ('follows', ?), ('unconfirmed', 1)", string(follows)),
		)
	})
	if err == nil {
		_, err = d.checkpoint("TRUNCATE")
	}
	return l, err
}

// lineage reads what succeed and ConfirmRestore wrote.
func (d *database) lineage() (Lineage, error) {
	var follows string
	var unconfirmed int
	err := d.conn.QueryRowContext(d.ctx, `SELECT coalesce((SELECT value FROM meta WHERE name = 'follows'), '[]'),
		(SELECT count(*) FROM meta WHERE name = 'unconfirmed')`).Scan(&follows, &unconfirmed)
	if err != nil {
		return Lineage{}, err
	}
	l := Lineage{Epoch: d.uuid, Confirmed: unconfirmed == 0}
	if err := json.Unmarshal([]byte(follows), &l.Follows); err != nil {
		return l, fmt.Errorf("%w: its lineage cannot be read (%v)", ErrDamaged, err)
	}
	return l, nil
}
