package server_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bramble.dev/bramble/server"
)

// archive makes a tar.gz of name, content, name, content...
func archive(t testing.TB, content ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	w := tar.NewWriter(zip)
	for i := 0; i < len(content); i += 2 {
		if err := w.WriteHeader(&tar.Header{Name: content[i], Mode: 0o600, Size: int64(len(content[i+1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestRestoreOfBadArchives: nothing but a backup is taken, and what was there
// is still there.
func TestRestoreOfBadArchives(t *testing.T) {
	whole := []string{"backup.json", "{}", "pki/ca.crt", "c", "pki/ca.key", "k", "bramble.db", "no database, though long enough to be looked at"}
	good := archive(t, whole...)
	var many []string
	for i := range 70 {
		many = append(many, fmt.Sprintf("pki/%d", i), "x")
	}
	for name, test := range map[string]struct {
		archive []byte
		want    string
	}{
		"empty":        {nil, "EOF"},
		"text":         {[]byte("hello"), "cannot read the backup"},
		"cut off":      {good[:len(good)-20], "EOF"},
		"no database":  {archive(t, whole[:6]...), "bramble.db is missing"},
		"no authority": {archive(t, whole[0], whole[1], whole[6], whole[7]), "pki/ca.crt is missing"},
		"climbs out":   {archive(t, append([]string{"pki/../../evil", "x"}, whole...)...), `"pki/../../evil" is not of a backup`},
		"another file": {archive(t, append([]string{"etc/passwd", "x"}, whole...)...), `"etc/passwd" is not of a backup`},
		"twice":        {archive(t, append(whole[6:8:8], whole...)...), "exists"},
		"no SQLite":    {good, "not a database"},
		"large key":    {archive(t, append([]string{"pki/large", strings.Repeat("x", 1<<20+1)}, whole...)...), `"pki/large" is not of a backup`},
		"many keys":    {archive(t, append(many, whole...)...), `"pki/64" is not of a backup`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			kept := filepath.Join(dir, "bramble.db")
			if err := os.WriteFile(kept, []byte("kept"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := server.Restore(t.Context(), dir, bytes.NewReader(test.archive), true)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if text, err := os.ReadFile(kept); string(text) != "kept" {
				t.Errorf("what was there is %q, %v", text, err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, ".restore-*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestRestoreThatFailsAtItsEnd: a disk may fail between the steps that cannot be
// one.
func TestRestoreThatFailsAtItsEnd(t *testing.T) {
	for _, there := range [][]string{{"bramble.db", "bramble.db-wal", "pki/ca.key"}, {"bramble.db"}, nil} {
		dir, fresh := t.TempDir(), t.TempDir()
		write := func(path, text string) {
			t.Helper()
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		var names []string
		for _, name := range there {
			write(filepath.Join(dir, name), "old")
			names = append(names, strings.Split(name, "/")[0])
		}
		write(filepath.Join(fresh, "pki/ca.key"), "new") // and no database
		if err := server.PutInPlace(fresh, dir, names); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("with %v: %v", there, err)
		}
		for _, name := range there {
			if text, err := os.ReadFile(filepath.Join(dir, name)); string(text) != "old" {
				t.Errorf("with %v: %s is %q, %v", there, name, text, err)
			}
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != len(there) {
			t.Errorf("with %v: there is %v, %v", there, entries, err)
		}
	}
}

func FuzzRestore(f *testing.F) {
	f.Add(archive(f, "backup.json", "{}", "pki/ca.crt", "c", "pki/ca.key", "k", "bramble.db", "x"))
	f.Add([]byte("hello"))
	f.Fuzz(func(t *testing.T, data []byte) {
		outside := t.TempDir()
		dir := filepath.Join(outside, "data")
		if _, err := server.Restore(t.Context(), dir, bytes.NewReader(data), false); err == nil {
			return // a backup
		}
		entries, err := os.ReadDir(outside)
		if err != nil || len(entries) != 1 {
			t.Errorf("written outside the data directory: %v, %v", entries, err)
		}
	})
}
