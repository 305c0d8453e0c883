package main

import (
	"bytes"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"bramble.dev/bramble/cmd/settings"
	"bramble.dev/bramble/nodeagent"
	"bramble.dev/bramble/nodeagent/state"
)

func settingsOf(t *testing.T, args ...string) (nodeagent.Config, error) {
	t.Helper()
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	addRunFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return readSettings(flags)
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSettings(t *testing.T) {
	path := write(t, "state-dir: /from/file\npause: /from/file\npatience: 7s\n")
	t.Setenv("BRAMBLE_STATE_DIR", "/from/environment")
	t.Setenv("BRAMBLE_PAUSE", "/from/environment")
	cfg, err := settingsOf(t, "--config", path, "--pause", "/from/flag")
	if err != nil {
		t.Fatal(err)
	}
	if cfg.StateDir != "/from/environment" || cfg.PauseFile != "/from/flag" || cfg.Patience.String() != "7s" {
		t.Errorf("settings: %+v", cfg)
	}
}

func TestUnknownSettingIsAnError(t *testing.T) {
	_, err := settingsOf(t, "--config", write(t, "state-dri: /x\n"))
	if err == nil || !strings.Contains(err.Error(), `unknown setting "state-dri"`) || !strings.Contains(settings.HintOf(err), "state-dir") {
		t.Errorf("error %v", err)
	}
	if _, err := settingsOf(t, "--config", "/nonexistent/agent.yaml"); err == nil {
		t.Error("a file that was named and is missing is no error")
	}
	if _, err := settingsOf(t, "--log-level", "loud"); err == nil {
		t.Error("a wrong level is no error")
	}
}

func TestUserIsChecked(t *testing.T) {
	host, inside := write(t, "         0          0 4294967295\n"), write(t, "0 1000 1\n1 100000 65536\n")
	for _, c := range []struct {
		uid   int
		uids  string
		words string
	}{{0, host, "root"}, {1000, inside, "user namespace"}, {1000, host, ""}} {
		err := checkUser(c.uid, c.uids)
		if c.words == "" && err != nil || c.words != "" && (err == nil || !strings.Contains(err.Error(), c.words) || settings.HintOf(err) == "") {
			t.Errorf("uid %d: %v, want %q and a hint", c.uid, err, c.words)
		}
	}
}

// TestJoinKeepsItsKey: an answer that was lost must not make the node a stranger.
func TestJoinKeepsItsKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	_, first, err := nodeKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, second, err := nodeKey(dir)
	if err != nil || string(first) != string(second) {
		t.Errorf("another key at the second try (%v)", err)
	}
	info, err := os.Stat(filepath.Join(dir, "key.pem"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's mode: %v, %v", info, err)
	}
}

// TestJoinExplainsItself: what goes wrong says what to do next.
func TestJoinExplainsItself(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := state.Join(dir, state.Facts{NodeName: "shelf", PodCIDR: "10.100.1.0/24"}, state.Identity{}); err != nil {
		t.Fatal(err)
	}
	token := "bramble1." + strings.Repeat("0", 64) + ".abcdef.0123456789abcdef"
	for _, c := range []struct{ name, dir, token, hint string }{
		{"shelf", dir, token, "--server"}, // nobody listens on port 1
		{"attic", dir, token, "edgectl delete node shelf"},
		{"attic", "/proc/nowhere", token, "--state-dir"},
	} {
		_, err := join(t.Context(), joinOptions{server: "127.0.0.1:1", nodeName: c.name, stateDir: c.dir}, c.token)
		if err == nil || !strings.Contains(settings.HintOf(err), c.hint) {
			t.Errorf("join as %s in %s: %v, hint %q, want one with %q", c.name, c.dir, err, settings.HintOf(err), c.hint)
		}
	}
	other := httptest.NewTLSServer(http.NotFoundHandler())
	defer other.Close()
	_, err := join(t.Context(), joinOptions{server: other.Listener.Addr().String(), nodeName: "attic", stateDir: t.TempDir()}, token)
	if err == nil || !strings.Contains(settings.HintOf(err), "the server that made the token") {
		t.Errorf("join at another cluster's server: %v, hint %q", err, settings.HintOf(err))
	}
	if err := newJoin().Args(nil, nil); settings.HintOf(err) == "" {
		t.Errorf("without a token: %v, and no hint", err)
	}
}

// TestLibrariesAreQuiet: net/http writes by package log what a pod sends unasked.
func TestLibrariesAreQuiet(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	var info, debug bytes.Buffer
	quietLibraries(slog.New(slog.NewTextHandler(&info, nil)))
	log.Print("Unsolicited response received on idle HTTP channel")
	quietLibraries(slog.New(slog.NewTextHandler(&debug, &slog.HandlerOptions{Level: slog.LevelDebug})))
	log.Print("Unsolicited response received on idle HTTP channel")
	if info.Len() != 0 || debug.Len() == 0 {
		t.Errorf("at level info: %q, at level debug: %q", &info, &debug)
	}
}
