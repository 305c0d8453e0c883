package server_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"bramble.dev/bramble/server"
	"bramble.dev/bramble/server/api"
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

// A restore that was killed leaves no server that begins an empty cluster in its
// place, and nothing of itself once it is done again.
func TestRestoreThatWasKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	left := filepath.Join(dir, ".restore-1")
	// It had set the old cluster aside and placed the authority.
	if err := errors.Join(os.MkdirAll(left, 0o700), os.MkdirAll(filepath.Join(dir, "pki"), 0o700), os.WriteFile(filepath.Join(left, "bramble.db"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	cfg := server.DefaultConfig()
	cfg.DataDir, cfg.Listen = dir, "127.0.0.1:0"
	s, err := server.New(cfg, nil, quiet())
	if err == nil {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-s.Ready(); cancel() }()
		err = s.Run(ctx)
		cancel()
	}
	if err == nil || !strings.Contains(err.Error(), "bramble-server restore --replace") {
		t.Errorf("a server starts in what a restore left: %v", err)
	}
	if _, err := server.Restore(t.Context(), dir, strings.NewReader("no backup"), true); err == nil {
		t.Error("something was restored")
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was left of the first is still there: %v", err)
	}
}

// A backup whose keys a server cannot use replaces nothing.
func TestRestoreOfDamagedKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := start(t, dir, nil)
	client, err := rest.HTTPClientFor(r.config)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Get(r.config.Host + api.BackupPath)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	zip, err := gzip.NewReader(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var whole []string
	for from := tar.NewReader(zip); ; {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		whole = append(whole, header.Name, string(content))
	}
	client.CloseIdleConnections()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(whole); i += 2 {
		if !strings.HasPrefix(whole[i], "pki/") {
			continue
		}
		damaged := slices.Clone(whole)
		damaged[i+1] = "-----"
		if _, err := server.Restore(t.Context(), dir, bytes.NewReader(archive(t, damaged...)), true); err == nil {
			t.Errorf("%s is damaged, and the backup was restored", whole[i])
		}
		if replaced, _ := filepath.Glob(filepath.Join(dir, "replaced-*")); len(replaced) > 0 {
			t.Fatalf("%s is damaged, and the cluster was set aside", whole[i])
		}
	}
	if _, err := server.Restore(t.Context(), dir, bytes.NewReader(archive(t, whole...)), true); err != nil {
		t.Errorf("the whole backup: %v", err)
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
