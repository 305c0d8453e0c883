package server

import (
	"log/slog"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bramble.dev/bramble/server/auth"
	"bramble.dev/bramble/server/store"
)

// TestRecordsSayWhatTheStoreSays: a client hears of the server's disk, also when it
// wants a join token.
func TestRecordsSayWhatTheStoreSays(t *testing.T) {
	s, err := store.Open(t.Context(), store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = records{s, slog.New(slog.DiscardHandler)}.PutRecord(t.Context(), auth.RecordKinds()[0], auth.Record{Name: "x"})
	if !apierrors.IsServiceUnavailable(err) {
		t.Errorf("got %v", err)
	}
}
