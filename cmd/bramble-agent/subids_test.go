package main

import (
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"bramble.dev/bramble/cmd/settings"
)

// TestSubordinateIDsAreChecked: the error names the file, and the hint the line
// to add, of a range that nobody has.
func TestSubordinateIDsAreChecked(t *testing.T) {
	u := &user.User{Username: "bramble", Uid: "1001"}
	const others = "pi:100000:65536\nbrambles:165536:65536\n"
	for _, c := range []struct {
		name, subuid, subgid, nsswitch string
		words, hint                    string // empty: it passes
	}{
		{name: "by name", subuid: others + "bramble:231072:65536\n", subgid: "bramble:231072:65536"},
		{name: "by id", subuid: "1001:100000:65536\n", subgid: "1001:100000:65536\n"},
		{name: "no file", words: "subuid and", hint: "bramble:100000:65536"},
		{name: "others only", subuid: others, subgid: others, words: "subgid", hint: "bramble:231072:65536"},
		{name: "half", subuid: "bramble:100000:65536\n", words: "subgid", hint: "bramble:165536:65536"},
		{name: "an empty range", subuid: "bramble:100000:0\n", subgid: "bramble:x:1\n", words: "subuid", hint: "bramble:100000:65536"},
		{name: "from a directory", nsswitch: "passwd: files\nsubid: sss # LDAP\n"},
		{name: "from the files", nsswitch: "subid:\tfiles\n", words: "subuid", hint: "podman system migrate"},
	} {
		etc := t.TempDir()
		for name, text := range map[string]string{"subuid": c.subuid, "subgid": c.subgid, "nsswitch.conf": c.nsswitch} {
			if text == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(etc, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := checkSubordinate(u, etc)
		switch {
		case c.words == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.words != "" && (err == nil || !strings.Contains(err.Error(), c.words) || !strings.Contains(settings.HintOf(err), c.hint)):
			t.Errorf("%s: %v, hint %q, want %q and %q", c.name, err, settings.HintOf(err), c.words, c.hint)
		}
	}
}
