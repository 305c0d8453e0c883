package store_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bramble.dev/bramble/server/store"
)

// direct opens the database file with SQLite alone.
func direct(t testing.TB, dir string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, store.FileName))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func integrity(t testing.TB, dir string) {
	t.Helper()
	var found string
	db := direct(t, dir)
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&found); err != nil || found != "ok" {
		t.Errorf("integrity_check: %q, %v", found, err)
	}
	db.Close()
}

func TestDamagedFileIsSetAside(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"no database": func([]byte) []byte { return bytes.Repeat([]byte("not a database. "), 1000) },
		"cut off":     func(b []byte) []byte { return b[:len(b)/2] },
		"a page": func(b []byte) []byte {
			copy(b[2*4096:], bytes.Repeat([]byte{0xff}, len(b)-3*4096))
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, store.FileName)
			s := open(t, dir)
			for i := range 100 {
				put(t, s, fmt.Sprint("p", i), 0)
			}
			s.Close()
			good, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			bad := damage(bytes.Clone(good))
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err = store.Open(t.Context(), store.Config{Dir: dir})
			aside := path + ".damaged-1"
			if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), aside) || !strings.Contains(err.Error(), "backup") {
				t.Fatalf("got %v", err)
			}
			if kept, err := os.ReadFile(aside); err != nil || !bytes.Equal(kept, bad) {
				t.Errorf("the damaged file is not as it was: %v", err)
			}
			// A server that is started again must not come up empty.
			if _, err = store.Open(t.Context(), store.Config{Dir: dir}); !errors.Is(err, store.ErrDamaged) {
				t.Errorf("the next start: %v", err)
			}
			if err := os.WriteFile(path, good, 0o600); err != nil {
				t.Fatal(err)
			}
			if entries, _, err := open(t, dir).List("pods", "", 0); err != nil || len(entries) != 100 {
				t.Errorf("with the backup: %d, %v", len(entries), err)
			}
		})
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	for name, statement := range map[string]string{
		"schema":   "PRAGMA user_version = 99",
		"envelope": "UPDATE object SET body = X'0200017B7D'",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			put(t, s, "a", 0)
			s.Close()
			db := direct(t, dir)
			if _, err := db.Exec(statement); err != nil {
				t.Fatal(err)
			}
			db.Close()
			_, err := store.Open(t.Context(), store.Config{Dir: dir})
			if !errors.Is(err, store.ErrNewer) {
				t.Errorf("got %v", err)
			}
			if _, err := os.Stat(filepath.Join(dir, store.FileName)); err != nil {
				t.Errorf("the file of a newer version was moved: %v", err)
			}
		})
	}
}

// A power cut may tear off any part of the log. Writes may be lost with it, but
// never an old prefix's order, and no revision is ever handed out twice.
func TestTornLog(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 20 {
		dir := t.TempDir()
		path := filepath.Join(dir, store.FileName)
		s := open(t, dir)
		handedOut := map[uint64]bool{}
		for n := range 30 {
			handedOut[put(t, s, fmt.Sprint("p", n), 0)] = true
		}
		torn := t.TempDir()
		copyTorn(t, path, filepath.Join(torn, store.FileName), random)
		s.Close()

		s = open(t, torn)
		entries, _, err := s.List("pods", "", 0)
		if err != nil {
			t.Fatal(err)
		}
		for n := range len(entries) { // a prefix of what was written
			if _, ok := s.Get(key(fmt.Sprint("p", n))); !ok {
				t.Errorf("try %d: p%d is lost, a later one is not", i, n)
			}
		}
		for n := range 10 {
			if rev := put(t, s, fmt.Sprint("q", n), 0); handedOut[rev] {
				t.Errorf("try %d: revision %d was handed out again", i, rev)
			}
		}
		s.Close()
		integrity(t, torn)
	}
}

func copyTorn(t *testing.T, from, to string, random *rand.Rand) {
	t.Helper()
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(from + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if suffix != "" {
			b = b[:random.IntN(len(b)+1)]
			if random.IntN(2) == 0 && len(b) > 0 {
				b[len(b)-1-random.IntN(min(len(b), 4096))] ^= 0xff
			}
		}
		if err := os.WriteFile(to+suffix, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
