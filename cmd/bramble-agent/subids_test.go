package main

import (
	"os/user"
	"strings"
	"testing"

	"bramble.dev/bramble/cmd/settings"
)

// TestSubordinateIDsAreChecked: the agent refuses a user without them, with the line to
// add.
func TestSubordinateIDsAreChecked(t *testing.T) {
	u := &user.User{Username: "bramble", Uid: "1001"}
	err := checkSubordinate(t.TempDir(), u)
	if err == nil || !strings.Contains(err.Error(), "/etc/subuid") || !strings.Contains(settings.HintOf(err), "bramble:100000:65536") {
		t.Errorf("without: %v, hint %q", err, settings.HintOf(err))
	}
	root := tree(t, map[string]string{"etc/subuid": "bramble:100000:1000\n", "etc/subgid": "1001:100000:65536\n"})
	if err := checkSubordinate(root, u); err != nil {
		t.Errorf("with few: %v", err)
	}
}
