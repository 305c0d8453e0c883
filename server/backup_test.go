package server_test

import (
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"bramble.dev/bramble/server"
	"bramble.dev/bramble/server/store"
)

// TestABackupThatNobodyTakesMakesWay for the next.
func TestABackupThatNobodyTakesMakesWay(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(t.Context(), store.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	much := make([]byte, 8<<20) // more than the kernel holds of a connection
	_, _ = rand.Read(much)
	if err := os.Mkdir(filepath.Join(dir, "pki"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pki", "ca.crt"), much, 0o600); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server.NewBackups(s, dir, time.Second))
	defer web.Close()
	client, err := net.Dial("tcp", web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_ = client.(*net.TCPConn).SetReadBuffer(4 << 10) // it holds little
	if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: s\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(client, make([]byte, 1)); err != nil { // it has its turn, and takes no more
		t.Fatal(err)
	}
	within(t, time.Minute, "another backup", func() bool {
		resp, err := http.Get(web.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		taken, err := io.Copy(io.Discard, resp.Body)
		if resp.StatusCode == http.StatusTooManyRequests || errors.Is(err, io.ErrUnexpectedEOF) {
			return false // not yet its turn, or slower itself than the patience
		}
		if resp.StatusCode != http.StatusOK || err != nil || taken < int64(len(much)) {
			t.Fatalf("another backup: %s, %d bytes, %v", resp.Status, taken, err)
		}
		return true
	})
}
