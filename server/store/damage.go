package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mattn/go-sqlite3"
)

// isDamage reports whether err says that the file's content is broken, as
// opposed to the disk being full, slow or out of reach.
func isDamage(err error) bool {
	if errors.Is(err, errBody) || errors.Is(err, ErrDamaged) {
		return true
	}
	var e sqlite3.Error
	return errors.As(err, &e) && (e.Code == sqlite3.ErrCorrupt || e.Code == sqlite3.ErrNotADB)
}

// setAside renames the database at path and what belongs to it, so that
// nothing overwrites what can still be rescued, and returns the new name.
func setAside(path string) (string, error) {
	aside := ""
	for i := 1; ; i++ {
		aside = fmt.Sprintf("%s.damaged-%d", path, i)
		if _, err := os.Lstat(aside); errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	for _, suffix := range []string{"-wal", "-shm", ""} {
		err := os.Rename(path+suffix, aside+suffix)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
	}
	return aside, nil
}

// damaged says what to do about the database that lies at aside.
func damaged(path, aside string, cause error) error {
	return fmt.Errorf("%w and was set aside as %s (%v): put a backup in the place of %s and start again; "+
		"to begin with an empty cluster instead, move the damaged file out of that directory",
		ErrDamaged, aside, cause, path)
}

// refuseEmptyStart returns an error when path is missing beside a database
// that was set aside: a service that restarts by itself must not come up empty.
func refuseEmptyStart(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	aside, err := filepath.Glob(path + ".damaged-*")
	if err != nil {
		return err
	}
	for _, name := range aside {
		if filepath.Ext(name) != "" && name[len(name)-4:] != "-wal" && name[len(name)-4:] != "-shm" {
			return damaged(path, name, errors.New("at an earlier start"))
		}
	}
	return nil
}

// check runs an integrity pragma and returns what it found as ErrDamaged.
func check(ctx context.Context, conn *sql.Conn, pragma string) error {
	var found string
	if err := conn.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(&found); err != nil {
		return err
	}
	if found != "ok" {
		return fmt.Errorf("%w: %s", ErrDamaged, found)
	}
	return nil
}

// checkAll reads the whole file in the background, as Open's check does not
// compare indexes with rows. It ends by itself or with Close.
func (s *Store) checkAll() {
	ctx, cancel := context.WithCancel(s.db.ctx)
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	s.workers.Go(func() {
		select {
		case <-s.closing:
			cancel()
		case <-stop:
		}
	})
	conn, err := s.db.pool.Conn(ctx)
	if err == nil {
		defer conn.Close()
		err = check(ctx, conn, "integrity_check(1)")
	}
	if err != nil && ctx.Err() == nil {
		s.config.Log.Error("the store's file is not sound: back up what is there and restore an older backup", "err", err)
	}
}
