package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"bramble.dev/bramble/cmd/settings"
)

func read(t *testing.T, file string, args ...string) (config, error) {
	t.Helper()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	addFlags(flags)
	if file != "" {
		path := filepath.Join(t.TempDir(), "server.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", path)
	}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return readSettings(flags)
}

func TestFlagsOverEnvironmentOverFile(t *testing.T) {
	t.Setenv("BRAMBLE_LISTEN", ":2")
	t.Setenv("BRAMBLE_NODE_LEASE_TIMEOUT", "50s")
	s, err := read(t, "listen: :1\nnode-lease-timeout: 60s\nadvertise: board.lan\n", "--listen", ":3")
	if err != nil {
		t.Fatal(err)
	}
	if s.server.Listen != ":3" || s.server.NodeLeaseTimeout != 50*time.Second || s.server.Advertise != "board.lan" ||
		s.server.ClusterCIDR != "10.100.0.0/14" || s.server.BuildDate.IsZero() {
		t.Errorf("got %+v", s.server)
	}
}

func TestBadSettings(t *testing.T) {
	for _, test := range []struct{ name, file, want, hint string }{
		{"misspelt", "lisen: :1\n", `unknown setting "lisen"`, "did you mean listen?"},
		{"unknown", "frobnicate: 1\n", `unknown setting "frobnicate"`, "the settings are advertise"},
		{"no YAML", "listen: [\n", "cannot read the configuration", "YAML"},
		{"bad value", "data-dir: here\n", "data-dir: must be an absolute path", ""},
		{"bad level", "log-level: loud\n", "log-level: must be debug", ""},
	} {
		_, err := read(t, test.file)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
		if hint := settings.HintOf(err); (hint != "") != (test.hint != "") || !strings.Contains(hint, test.hint) {
			t.Errorf("%s: hint %q, want %q", test.name, hint, test.hint)
		}
	}
	if _, err := read(t, "", "--config", "/nowhere/server.yaml"); err == nil {
		t.Error("a named file that is missing was passed over")
	}
}

// TestStartErrorsSayWhatToDo: the hint fits what went wrong.
func TestStartErrorsSayWhatToDo(t *testing.T) {
	open := func(cause error) error { return fmt.Errorf("cannot open the store in /data: %w", cause) }
	for _, test := range []struct {
		err  error
		hint string
	}{
		{open(syscall.ENOSPC), "make room"},
		{open(syscall.EROFS), "dmesg"},
		{open(syscall.EACCES), "--data-dir"},
		{fmt.Errorf("cannot listen on :80: %w", &net.OpError{Op: "listen", Err: syscall.EACCES}), ""},
		{open(syscall.EIO), ""},
	} {
		if got := settings.HintOf(hint(test.err)); !strings.Contains(got, test.hint) || (got == "") != (test.hint == "") {
			t.Errorf("%v: hint %q, want %q", test.err, got, test.hint)
		}
	}
}

func TestErrorsOfTheCommandLineSayWhatToDo(t *testing.T) {
	for _, args := range []string{"--data-dirr=/x", "serve", "restore --replac x", "version now"} {
		root := newRoot()
		root.SetArgs(strings.Fields(args))
		if err := root.Execute(); err == nil || !strings.Contains(settings.HintOf(err), "--help") {
			t.Errorf("%s: error %v, hint %q", args, err, settings.HintOf(err))
		}
	}
}

func TestRestoreNeedsAFile(t *testing.T) {
	root := newRoot()
	root.SetArgs([]string{"restore"})
	err := root.Execute()
	if err == nil || !strings.Contains(err.Error(), "one FILE") || !strings.Contains(settings.HintOf(err), "edgectl backup") {
		t.Errorf("error %v, hint %q", err, settings.HintOf(err))
	}
}
