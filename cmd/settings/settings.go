// Package settings is how the programs are told what to do and say that they
// were told wrong: flags over BRAMBLE_* in the environment over a YAML file over
// defaults, and errors that carry a hint. It knows no single setting: those are
// the flags that a command defines. cmd/bramble-server and cmd/bramble-agent use
// it; edgectl has kubectl's flags and kubectl's files.
package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
)

// Read returns the settings, one for each of flags, which must have been parsed
// and must hold "config", the path of the file. That file may be missing where
// nobody named another than the default. A key of the file that is no flag is an
// error, with a hint.
func Read(flags *pflag.FlagSet) (*viper.Viper, error) {
	v := viper.New()
	v.SetEnvPrefix("BRAMBLE")
	v.SetEnvKeyReplacer(strings.NewReplacer("-", "_"))
	v.AutomaticEnv()
	if err := v.BindPFlags(flags); err != nil {
		return nil, err
	}
	return v, readFile(v, flags)
}

// Level returns the setting log-level.
func Level(v *viper.Viper) (level slog.Level, err error) {
	text := v.GetString("log-level")
	if err := level.UnmarshalText([]byte(text)); err != nil {
		return level, fmt.Errorf("log-level: must be debug, info, warn or error, not %q", text)
	}
	return level, nil
}

// readFile reads the configuration file and refuses keys that are no settings.
func readFile(v *viper.Viper, flags *pflag.FlagSet) error {
	path := v.GetString("config")
	v.SetConfigFile(path)
	v.SetConfigType("yaml")
	err := v.ReadInConfig()
	if errors.Is(err, fs.ErrNotExist) && path == flags.Lookup("config").DefValue {
		return nil
	}
	if err != nil {
		return Hint(fmt.Errorf("cannot read the configuration %s: %w", path, err), "it is YAML with one setting a line, such as  log-level: debug")
	}
	var known []string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "config" && f.Name != "help" {
			known = append(known, f.Name)
		}
	})
	for _, key := range v.AllKeys() {
		if v.InConfig(key) && !slices.Contains(known, key) {
			return Hint(fmt.Errorf("%s: unknown setting %q", path, key), suggestion(key, known))
		}
	}
	return nil
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
