package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bramble.dev/bramble/server/store"
)

// backUp copies the database as it is now into a directory of its own.
func backUp(t *testing.T, s *store.Store) string {
	t.Helper()
	dir := t.TempDir()
	if err := s.Backup(t.Context(), filepath.Join(dir, store.FileName)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func restamp(body []byte, rev uint64) []byte {
	value, _, _ := strings.Cut(string(body), "@")
	return text(value)(rev)
}

func TestBackupAndRestore(t *testing.T) {
	s := open(t, t.TempDir())
	a := put(t, s, "a", 0)
	dir := backUp(t, s)
	var last uint64
	for range 100 {
		a = put(t, s, "a", a)
		last = put(t, s, "b", last)
	}

	lineage, err := store.Restore(t.Context(), dir, restamp)
	if err != nil {
		t.Fatal(err)
	}
	r := open(t, dir)
	if diff := cmp.Diff(r.Lineage(), store.Lineage{Epoch: lineage.Epoch, Follows: []string{s.Epoch()}}); diff != "" || lineage.Epoch == s.Epoch() {
		t.Errorf("lineage (got, want): %s", diff)
	}
	if _, ok := r.Get(key("b")); ok {
		t.Error("what came after the backup is there")
	}
	got, ok := r.Get(key("a"))
	if !ok || got.Rev <= last || string(got.Body.Bytes()) != fmt.Sprintf("a@%d", got.Rev) {
		t.Errorf("what was backed up: %s at %d, %v", got.Body.Bytes(), got.Rev, ok)
	}
	for _, rev := range []uint64{a, last, r.Revision() - 1} {
		if _, err := r.Watch("pods", rev); !errors.Is(err, store.ErrCompact) {
			t.Errorf("a watch from revision %d: %v, want ErrCompact", rev, err)
		}
	}
	if next := put(t, r, "c", 0); next <= last {
		t.Errorf("revision %d was handed out after %d", next, last)
	}

	if err := r.ConfirmRestore(t.Context()); err != nil || !r.Lineage().Confirmed {
		t.Errorf("confirm: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if again := open(t, dir).Lineage(); !again.Confirmed || again.Epoch != lineage.Epoch {
		t.Errorf("after a restart: %+v", again)
	}
}

func TestRestoreOfWhatIsNoBackup(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, store.FileName), []byte("this is no database, however long it may be"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Restore(t.Context(), dir, restamp); err == nil {
		t.Error("rubbish was restored")
	}
	empty := t.TempDir()
	if _, err := store.Restore(t.Context(), empty, restamp); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("an empty database: %v", err)
	}
	running := open(t, t.TempDir())
	dir = backUp(t, running)
	open(t, dir)
	if _, err := store.Restore(t.Context(), dir, restamp); !errors.Is(err, store.ErrInUse) {
		t.Errorf("a database in use: %v", err)
	}
}

func TestBackupOverAFile(t *testing.T) {
	s := open(t, t.TempDir())
	path := filepath.Join(t.TempDir(), "kept")
	if err := os.WriteFile(path, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Backup(t.Context(), path); err == nil {
		t.Error("a file was overwritten")
	}
}
