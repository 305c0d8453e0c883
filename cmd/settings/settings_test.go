package settings_test

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"bramble.dev/bramble/cmd/settings"
)

// read reads the settings of a command with three flags, from args and a file.
func read(t *testing.T, file string, args ...string) (settings.Settings, error) {
	t.Helper()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags.String("config", filepath.Join(t.TempDir(), "default.yaml"), "")
	flags.String("state-dir", "default", "")
	flags.String("log-level", "info", "")
	flags.Int("max-pods", 110, "")
	flags.Duration("patience", time.Second, "")
	if file != "" {
		path := filepath.Join(t.TempDir(), "file.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", path)
	}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return settings.Read(flags)
}

func TestFlagsOverEnvironmentOverFileOverDefaults(t *testing.T) {
	const file = "state-dir: file\n"
	for _, test := range []struct {
		want, file, env string
		args            []string
	}{
		{"default", "", "", nil},
		{"file", file, "", nil},
		{"environment", file, "environment", nil},
		{"flag", file, "environment", []string{"--state-dir", "flag"}},
	} {
		if test.env != "" {
			t.Setenv("BRAMBLE_STATE_DIR", test.env)
		}
		v, err := read(t, test.file, test.args...)
		if err != nil {
			t.Fatal(err)
		}
		if got := v.GetString("state-dir"); got != test.want {
			t.Errorf("state-dir %q, want %q", got, test.want)
		}
	}
}

func TestBadFiles(t *testing.T) {
	for _, test := range []struct{ name, file, want, hint string }{
		{"misspelt", "state-dri: /x\n", `unknown setting "state-dri"`, "did you mean state-dir?"},
		{"unknown", "frobnicate: 1\n", `unknown setting "frobnicate"`, "the settings are log-level, max-pods, patience, state-dir"},
		{"no setting of a file", "config: /x\n", `unknown setting "config"`, "the settings are"},
		{"no YAML", "state-dir: [\n", "cannot read the configuration", "YAML"},
		{"twice", "state-dir: /x\nstate-dir: /y\n", "already set", "YAML"},
		{"no number", "max-pods: many\n", `invalid argument "many" for "--max-pods"`, "as the flag --max-pods is"},
		{"no time", "patience: 3\n", `invalid argument "3" for "--patience"`, "as the flag --patience is"},
		{"a list", "state-dir: [/x]\n", "state-dir: must be one value", "YAML"},
	} {
		_, err := read(t, test.file)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
		if hint := settings.HintOf(err); !strings.Contains(hint, test.hint) {
			t.Errorf("%s: hint %q, want %q", test.name, hint, test.hint)
		}
	}
	if _, err := read(t, "", "--config", "/nowhere/file.yaml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a named file that is missing was passed over: %v", err)
	}
}

// TestTypes reads a number and a time of each place, and refuses what is neither.
func TestTypes(t *testing.T) {
	v, err := read(t, "max-pods: 7\npatience: 2m\nlog-level:\n")
	if err != nil || v.GetInt("max-pods") != 7 || v.GetDuration("patience") != 2*time.Minute || v.GetString("log-level") != "info" {
		t.Errorf("of a file: %d, %v, %v", v.GetInt("max-pods"), v.GetDuration("patience"), err)
	}
	t.Setenv("BRAMBLE_MAX_PODS", "a few")
	if _, err = read(t, ""); err == nil || !strings.Contains(err.Error(), `BRAMBLE_MAX_PODS in the environment: invalid argument "a few"`) {
		t.Errorf("of the environment: %v", err)
	}
}

func TestLevel(t *testing.T) {
	v, err := read(t, "", "--log-level", "debug")
	if err != nil {
		t.Fatal(err)
	}
	if level, err := settings.Level(v); err != nil || level != slog.LevelDebug {
		t.Errorf("level %v, %v", level, err)
	}
	if v, err = read(t, "", "--log-level", "loud"); err != nil {
		t.Fatal(err)
	}
	if _, err := settings.Level(v); err == nil || !strings.Contains(err.Error(), "log-level: must be debug") {
		t.Errorf("a wrong level: %v", err)
	}
}

// TestPrint: a hint is printed also where an error was wrapped around it.
func TestPrint(t *testing.T) {
	cause := errors.New("no name")
	hinted := settings.Hint(cause, "give one")
	for _, test := range []struct {
		err  error
		want string
	}{
		{cause, "error: no name\n"},
		{hinted, "error: no name\nhint: give one\n"},
		{fmt.Errorf("cannot join: %w", hinted), "error: cannot join: no name\nhint: give one\n"},
	} {
		var out strings.Builder
		settings.Print(&out, test.err)
		if out.String() != test.want {
			t.Errorf("printed %q, want %q", out.String(), test.want)
		}
		if !errors.Is(test.err, cause) {
			t.Errorf("%v hides its cause", test.err)
		}
	}
}
