package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

// lookEndpoint has Podman read its database and nothing else: there is no such
// container.
const lookEndpoint = "/v4.0.0/libpod/containers/bramble-looks/exists"

// errDatabase: Podman cannot use its database, and will not by itself.
var errDatabase = errors.New("podman's database is damaged; pods that run go on, but nothing can be changed. " +
	"To make all pods of this node anew, move it away as the node's user: " +
	"cd ~/.local/share/containers/storage && for f in libpod/bolt_state.db db.sql; do mv $f $f.damaged; done")

// refusedLook closes the answer to a look and returns why it is none.
func refusedLook(response *http.Response) error {
	defer response.Body.Close()
	if response.StatusCode < http.StatusInternalServerError {
		return nil
	}
	words, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
	return storageError(fmt.Errorf("podman's service answers %s: %s", response.Status, bytes.TrimSpace(words)))
}

// endedAtOnce says why a service could not be started, in the words that Podman
// has for it now: what it wrote itself went to the agent's log.
func (s *Service) endedAtOnce(ctx context.Context, state *os.ProcessState) error {
	cmd := s.command(ctx, "ps", "--quiet", "--last=1")
	var words bytes.Buffer
	cmd.Stderr = &words
	if cmd.Run() == nil {
		return fmt.Errorf("podman's service ended at once: %s (the agent's log has its words)", state)
	}
	lines := strings.Split(strings.TrimSpace(words.String()), "\n")
	return storageError(fmt.Errorf("podman's service ended at once: %s: %s", state, strings.TrimPrefix(lines[len(lines)-1], "Error: ")))
}

// storageError adds what can be done to Podman's words about its database: bolt's
// in Podman 4, SQLite's in Podman 5.
func storageError(err error) error {
	for _, words := range []string{"bolt_state.db", "invalid database", "database disk image is malformed", "file is not a database"} {
		if strings.Contains(err.Error(), words) {
			return fmt.Errorf("%w (%w)", errDatabase, err)
		}
	}
	return err
}
