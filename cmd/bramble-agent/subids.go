package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"bramble.dev/bramble/cmd/settings"
)

// Of the ranges of subordinate ids: where useradd begins to give them, and how
// many each user gets.
const (
	firstSubID = 100_000
	subIDs     = 65_536
)

// checkSubordinate refuses a user without subordinate ids in etc/subuid and
// etc/subgid (subuid(5)): Podman then maps nothing but the user itself, and most
// images end in errors that do not say so. Ids that come from elsewhere by
// nsswitch.conf are Podman's to find.
func checkSubordinate(u *user.User, etc string) error {
	if elsewhere(filepath.Join(etc, "nsswitch.conf")) {
		return nil
	}
	var missing []string
	next := firstSubID
	for _, name := range []string{"subuid", "subgid"} {
		path := filepath.Join(etc, name)
		data, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot tell the user's subordinate ids: %w", err)
		}
		own, end := ranges(string(data), u)
		if !own {
			missing = append(missing, path)
		}
		next = max(next, end)
	}
	if missing == nil {
		return nil
	}
	return settings.Hint(fmt.Errorf("user %s has no subordinate ids in %s: rootless Podman needs them for the users inside containers", u.Username, strings.Join(missing, " and ")),
		fmt.Sprintf("as root, add the line %s:%d:%d to %s, and then, as %[1]s: podman system migrate", u.Username, next, subIDs, strings.Join(missing, " and to ")))
}

// ranges reads lines of the form USER-OR-ID:FIRST:COUNT: whether one is the
// user's, and the first id after all of them.
func ranges(text string, u *user.User) (own bool, end int) {
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) != 3 {
			continue
		}
		first, firstErr := strconv.Atoi(fields[1])
		count, countErr := strconv.Atoi(fields[2])
		if firstErr != nil || countErr != nil || count <= 0 {
			continue
		}
		own = own || fields[0] == u.Username || fields[0] == u.Uid
		end = max(end, first+count)
	}
	return own, end
}

// elsewhere says whether an nsswitch.conf has subordinate ids come from another
// place than the files.
func elsewhere(path string) bool {
	data, _ := os.ReadFile(path) // missing: the files
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "#")
		if source, ok := strings.CutPrefix(strings.TrimSpace(line), "subid:"); ok {
			return strings.TrimSpace(source) != "files"
		}
	}
	return false
}
