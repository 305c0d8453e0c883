package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"

	_ "github.com/mattn/go-sqlite3" // registers the driver "sqlite3"
)

// migrations bring a database from the version that is their index to the next
// one. A version that was released is never edited.
var migrations = []string{`
	CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
	CREATE TABLE object (
		id INTEGER PRIMARY KEY,
		resource TEXT NOT NULL,
		namespace TEXT NOT NULL,
		name TEXT NOT NULL,
		revision INTEGER NOT NULL,
		body BLOB NOT NULL, -- in an envelope
		UNIQUE (resource, namespace, name)
	);`,
}

// database is the file. Its methods are for one goroutine at a time.
type database struct {
	ctx  context.Context // never ends: a statement that began is not torn
	pool *sql.DB
	conn *sql.Conn
	put  *sql.Stmt
	drop *sql.Stmt

	uuid    string
	run     uint64 // the number of this Open, the upper half of its revisions
	unclean bool   // the last process left its log behind
}

// openDatabase opens or makes the file at path and brings its schema up to date.
// Before the first write come load, which finds most damage, and raiseRun.
func openDatabase(ctx context.Context, path string) (_ *database, err error) {
	d := &database{ctx: context.WithoutCancel(ctx)}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	if d.unclean, err = prepareFile(path); err != nil {
		return nil, err
	}
	if d.pool, err = sql.Open("sqlite3", dataSource(path)); err != nil {
		return nil, err
	}
	if d.conn, err = d.pool.Conn(ctx); err != nil {
		return nil, err
	}
	if err = d.configure(); err != nil {
		return nil, err
	}
	if d.unclean {
		if err = check(ctx, d.conn, "quick_check(1)"); err != nil {
			return nil, err
		}
	}
	if err = d.migrate(); err != nil {
		return nil, err
	}
	return d, d.prepare()
}

func dataSource(path string) string {
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// prepareFile makes the file with its final mode, which SQLite gives to the
// log beside it too, and reports whether the last process left a log behind.
func prepareFile(path string) (unclean bool, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return false, err
	}
	if err := errors.Join(f.Chmod(0o600), f.Close()); err != nil {
		return false, err
	}
	_, err = os.Lstat(path + "-wal")
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return true, err
}

func (d *database) configure() error {
	for _, pragma := range []string{
		"busy_timeout = 5000",
		"journal_mode = WAL",
		"synchronous = FULL",
		"wal_autocheckpoint = 0",
		"journal_size_limit = 16777216",
		"cache_size = -512",
		"temp_store = MEMORY",
		"trusted_schema = OFF",
	} {
		if err := d.exec("PRAGMA " + pragma); err != nil {
			return err
		}
	}
	return nil
}

func (d *database) migrate() error {
	var version int
	if err := d.conn.QueryRowContext(d.ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version > len(migrations) {
		return fmt.Errorf("%w (schema %d, this one knows %d): upgrade bramble-server, or restore a backup that is older",
			ErrNewer, version, len(migrations))
	}
	for ; version < len(migrations); version++ {
		err := d.transact(func() error {
			return d.exec(fmt.Sprintf("%s PRAGMA user_version = %d", migrations[version], version+1))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// raiseRun takes the next run number, and the database's UUID if it has none,
// and moves both into the file, where no torn log can take them back.
func (d *database) raiseRun() error {
	err := d.transact(func() error {
		if err := d.exec("INSERT OR IGNORE INTO meta VALUES ('uuid', ?), ('run', 0)", newUUID()); err != nil {
			return err
		}
		if err := d.exec("UPDATE meta SET value = value + 1 WHERE name = 'run'"); err != nil {
			return err
		}
		row := d.conn.QueryRowContext(d.ctx, `SELECT u.value, r.value FROM meta u, meta r WHERE u.name = 'uuid' AND r.name = 'run'`)
		return row.Scan(&d.uuid, &d.run)
	})
	if err != nil {
		return err
	}
	_, err = d.checkpoint("TRUNCATE")
	return err
}

// reach makes the run number cover rev, before rev is published: the counter
// in its lower half has run over, once in 2^32 changes.
func (d *database) reach(rev uint64) error {
	run := rev >> 32
	if run <= d.run {
		return nil
	}
	err := d.transact(func() error {
		return d.exec("UPDATE meta SET value = ? WHERE name = 'run'", int64(run))
	})
	if err == nil {
		_, err = d.checkpoint("TRUNCATE")
	}
	if err == nil {
		d.run = run
	}
	return err
}

func (d *database) prepare() (err error) {
	d.put, err = d.conn.PrepareContext(d.ctx, `INSERT INTO object (resource, namespace, name, revision, body)
		VALUES (?, ?, ?, ?, ?) ON CONFLICT (resource, namespace, name)
		DO UPDATE SET revision = excluded.revision, body = excluded.body`)
	if err != nil {
		return err
	}
	d.drop, err = d.conn.PrepareContext(d.ctx, "DELETE FROM object WHERE resource = ? AND namespace = ? AND name = ?")
	return err
}

// load calls each with every stored object.
func (d *database) load(each func(Entry)) error {
	rows, err := d.conn.QueryContext(d.ctx, "SELECT resource, namespace, name, revision, body FROM object")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var e Entry
		var sealed []byte
		if err := rows.Scan(&e.Resource, &e.Namespace, &e.Name, &e.Rev, &sealed); err != nil {
			return err
		}
		body, err := unseal(sealed)
		if err != nil {
			return fmt.Errorf("cannot read %s %s/%s: %w", e.Resource, e.Namespace, e.Name, err)
		}
		e.Body, e.Memo = NewBody(body), &Memo{}
		each(e)
	}
	return rows.Err()
}

// transact runs do in a transaction. When it returns nil, what do wrote is on
// disk; otherwise none of it is.
func (d *database) transact(do func() error) error {
	if err := d.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := do()
	if err == nil {
		err = d.exec("COMMIT")
	}
	if err != nil {
		// After some errors SQLite has rolled back by itself and says so here.
		_ = d.exec("ROLLBACK")
	}
	return err
}

func (d *database) exec(statement string, args ...any) error {
	_, err := d.conn.ExecContext(d.ctx, statement, args...)
	return err
}

// close closes the file; the last connection moves the log into it.
func (d *database) close() error {
	var errs []error
	if d.put != nil {
		errs = append(errs, d.put.Close())
	}
	if d.drop != nil {
		errs = append(errs, d.drop.Close())
	}
	if d.conn != nil {
		errs = append(errs, d.conn.Close())
	}
	if d.pool != nil {
		errs = append(errs, d.pool.Close())
	}
	return errors.Join(errs...)
}

// newUUID returns a random UUID (RFC 9562, version 4).
func newUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}
