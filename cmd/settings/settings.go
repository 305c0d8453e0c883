// Package settings is how the programs are told what to do and say that they
// were told wrong: flags over BRAMBLE_* in the environment over a YAML file over
// defaults, and errors that carry a hint. It knows no single setting: those are
// the flags that a command defines. cmd/bramble-server and cmd/bramble-agent use
// it; edgectl has kubectl's flags and kubectl's files.
package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// Settings are the values of flags, after environment and file.
type Settings struct{ flags *pflag.FlagSet }

// Read returns the settings, one for each of flags, which must have been parsed
// and must hold "config", the path of the file. That file may be missing where
// nobody named another than the default. A key of the file that is no flag is an
// error, and so is a value that the flag would not take, each with a hint.
func Read(flags *pflag.FlagSet) (Settings, error) {
	var known []string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			known = append(known, f.Name)
		}
	})
	given := func(name string) bool { return flags.Lookup(name).Changed }
	for _, name := range known {
		variable := "BRAMBLE_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		if value := os.Getenv(variable); value != "" && !given(name) {
			if err := flags.Set(name, value); err != nil {
				return Settings{}, Hint(fmt.Errorf("%s in the environment: %w", variable, err), "it is the setting "+name+", and is given as that: --help says how")
			}
		}
	}
	path := flags.Lookup("config")
	values, err := readFile(path.Value.String())
	if errors.Is(err, fs.ErrNotExist) && path.Value.String() == path.DefValue {
		return Settings{flags}, nil
	}
	if err != nil {
		return Settings{}, Hint(fmt.Errorf("cannot read the configuration %s: %w", path.Value, err), "it is YAML with one setting a line, such as  log-level: debug")
	}
	known = slices.DeleteFunc(known, func(name string) bool { return name == "config" })
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(known, name) {
			return Settings{}, Hint(fmt.Errorf("%s: unknown setting %q", path.Value, name), suggestion(name, known))
		}
		if given(name) {
			continue
		}
		if err := flags.Set(name, values[name]); err != nil {
			return Settings{}, Hint(fmt.Errorf("%s: %w", path.Value, err), "it is given as the flag --"+name+" is: --help says how")
		}
	}
	return Settings{flags}, nil
}

// GetString returns a setting that is a text. It panics if there is no such flag.
func (s Settings) GetString(name string) string { return must(s.flags.GetString(name)) }

// GetInt returns a setting that is a number. It panics if there is no such flag.
func (s Settings) GetInt(name string) int { return must(s.flags.GetInt(name)) }

// GetDuration returns a setting that is a time. It panics if there is no such flag.
func (s Settings) GetDuration(name string) time.Duration { return must(s.flags.GetDuration(name)) }

func must[T any](value T, err error) T {
	if err != nil {
		panic(err) // the command defines its flags
	}
	return value
}

// Level returns the setting log-level.
func Level(s Settings) (level slog.Level, err error) {
	text := s.GetString("log-level")
	if err := level.UnmarshalText([]byte(text)); err != nil {
		return level, fmt.Errorf("log-level: must be debug, info, warn or error, not %q", text)
	}
	return level, nil
}

// readFile reads a configuration file, as what would be written behind the flags.
func readFile(path string) (map[string]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var raw map[string]json.RawMessage
	if data, err = yaml.YAMLToJSONStrict(data); err == nil {
		err = json.Unmarshal(data, &raw)
	}
	if err != nil {
		return nil, err
	}
	values := make(map[string]string, len(raw))
	for name, value := range raw {
		var text string
		switch {
		case string(value) == "null": // a key without a value is none
			continue
		case json.Unmarshal(value, &text) == nil:
		case value[0] == '{' || value[0] == '[':
			return nil, fmt.Errorf("%s: must be one value", name)
		default:
			text = string(value)
		}
		values[name] = text
	}
	return values, nil
}

// suggestion names the setting that was meant, or all.
func suggestion(key string, known []string) string {
	best, distance := "", 4
	for _, k := range known {
		if d := editDistance(key, k); d < distance {
			best, distance = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %s?", best)
	}
	return "the settings are " + strings.Join(known, ", ")
}

// editDistance is how many letters must be changed to make b of a (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
