package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"strings"
)

// Of the ranges of subordinate ids: where useradd begins to give them, and how
// many each user gets.
const (
	firstSubID = 100_000
	subIDs     = 65_536
)

// Subids are the user's subordinate ids (subuid(5)). Ids that come from elsewhere by
// nsswitch.conf are Podman's to find.
type Subids struct {
	Elsewhere bool
	Missing   []string // files that give the user none
	Few       []string // files that give fewer than 65536
	Shared    string   // who has some of them too; "" if nobody
	Next      int      // the first id after all ranges
	Err       error    // the files cannot be read
}

func (p Place) lookSubids() Subids {
	s := Subids{Elsewhere: elsewhere(p.path("etc/nsswitch.conf")), Next: firstSubID}
	if p.User == nil || s.Elsewhere {
		return s
	}
	for _, name := range []string{"/etc/subuid", "/etc/subgid"} {
		data, err := os.ReadFile(p.path(name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.Err = err
			return s
		}
		own, others := ranges(string(data), p.User)
		count := 0
		for _, r := range own {
			count += r.count
		}
		switch {
		case count == 0:
			s.Missing = append(s.Missing, name)
		case count < subIDs:
			s.Few = append(s.Few, name)
		}
		for _, r := range append(own, others...) {
			s.Next = max(s.Next, r.first+r.count)
			if r.owner != "" && overlaps(r, own) {
				s.Shared = r.owner
			}
		}
	}
	return s
}

// span is a line of such a file; owner is "" of the user's own.
type span struct {
	owner        string
	first, count int
}

// ranges reads lines of the form USER-OR-ID:FIRST:COUNT.
func ranges(text string, u *user.User) (own, others []span) {
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) != 3 {
			continue
		}
		first, firstErr := strconv.Atoi(fields[1])
		count, countErr := strconv.Atoi(fields[2])
		switch {
		case firstErr != nil || countErr != nil || count <= 0:
		case fields[0] == u.Username || fields[0] == u.Uid:
			own = append(own, span{"", first, count})
		default:
			others = append(others, span{fields[0], first, count})
		}
	}
	return own, others
}

func overlaps(r span, own []span) bool {
	for _, o := range own {
		if r.first < o.first+o.count && o.first < r.first+r.count {
			return true
		}
	}
	return false
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

const checkSubids = "SubordinateIDs"

// Subordinate is the finding of a user's subordinate ids alone, by the files below
// root.
func Subordinate(root string, u *user.User) Finding {
	return checkSubordinate(Facts{User: u, Subids: Place{Root: root, User: u}.lookSubids()})[0]
}

// checkSubordinate looks for what rootless Podman maps users inside containers to.
// Without it, it maps nothing but the user itself, and most images end in errors that
// do not say so.
func checkSubordinate(f Facts) []Finding {
	if f.User == nil {
		return nil
	}
	name, s := f.User.Username, f.Subids
	add := func(files ...string) string {
		return fmt.Sprintf("echo %s:%d:%d | sudo tee -a %s && sudo -iu %[1]s podman system migrate", name, s.Next, subIDs, strings.Join(files, " "))
	}
	switch {
	case s.Elsewhere:
		return []Finding{fine(checkSubids, "subordinate ids come from another place than /etc, by nsswitch.conf")}
	case s.Err != nil:
		return []Finding{unknown(checkSubids, "the user's subordinate ids: %v", s.Err)}
	case s.Missing != nil:
		return []Finding{fatal(checkSubids, "user %s has no subordinate ids in %s: rootless Podman needs them for the users inside containers", name, strings.Join(s.Missing, " and ")).by("%s", add(s.Missing...))}
	case s.Few != nil:
		return []Finding{warning(checkSubids, "user %s has fewer than %d subordinate ids in %s: images with users of higher numbers cannot be unpacked", name, subIDs, strings.Join(s.Few, " and ")).by("%s", add(s.Few...))}
	case s.Shared != "":
		return []Finding{warning(checkSubids, "user %s has subordinate ids that %s has too: the pods of one may do what they like with the other's files", name, s.Shared).
			by("in /etc/subuid and /etc/subgid, make the line of %s %[1]s:%d:%d, and then, as %[1]s: podman system reset", name, s.Next, subIDs)}
	}
	return []Finding{fine(checkSubids, "user %s has %d subordinate ids or more", name, subIDs)}
}
