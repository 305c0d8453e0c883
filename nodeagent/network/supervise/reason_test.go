package supervise_test

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bramble.dev/bramble/nodeagent/network/supervise"
)

// TestReasonIsLogged holds that what a process says as it ends reaches the
// agent's own log, where a person looks.
func TestReasonIsLogged(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	log := &until{word: "no such bridge", found: cancel}
	s := supervise.New(supervise.Config{
		Command: []string{"sh", "-c", "echo starting; echo error: no such bridge; exit 1"},
		Socket:  filepath.Join(t.TempDir(), "network.sock"),
		Log:     slog.New(slog.NewTextHandler(log, nil)),
	})
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.text.String(), "error: no such bridge") {
		t.Errorf("the log does not say why it ended: %s", log.text.String())
	}
}

// until is a log that calls found once it has read word.
type until struct {
	mu    sync.Mutex // guards text
	text  bytes.Buffer
	word  string
	found func()
}

func (u *until) Write(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if bytes.Contains(p, []byte(u.word)) {
		u.found()
	}
	return u.text.Write(p)
}
