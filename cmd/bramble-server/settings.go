package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"bramble.dev/bramble/server"
	"bramble.dev/bramble/server/api"
)

const defaultConfigFile = "/etc/bramble/server.yaml"

// settings are all that the command can be told.
type settings struct {
	server server.Config
	level  slog.Level
}

// addFlags defines every setting: the file and the environment know no others.
func addFlags(flags *pflag.FlagSet) {
	d := server.DefaultConfig()
	flags.String("config", defaultConfigFile, "the configuration file; it may be missing unless named here")
	flags.String("data-dir", d.DataDir, "where the database, the authority and the administrator's kubeconfig are")
	flags.String("listen", d.Listen, "HOST:PORT of the API")
	flags.String("advertise", d.Advertise, "HOST or HOST:PORT by which others reach the API (default: the loopback address)")
	flags.String("kubeconfig", d.Kubeconfig, "where to write the administrator's kubeconfig (default: admin.kubeconfig in --data-dir)")
	flags.String("cluster-cidr", d.ClusterCIDR, "addresses of all pods")
	flags.String("service-cidr", d.ServiceCIDR, "addresses of all services")
	flags.Int("node-bits", d.NodeBits, "prefix length of a node's part of --cluster-cidr")
	flags.Duration("node-lease-timeout", d.NodeLeaseTimeout, "how long a node may be silent before it is Unknown")
	flags.Duration("shutdown-timeout", d.ShutdownTimeout, "how long requests may take to end at a stop")
	flags.String("log-level", "info", "debug, info, warn or error")
}

// readSettings merges flags over environment over file over defaults.
func readSettings(flags *pflag.FlagSet) (settings, error) {
	v := viper.New()
	v.SetEnvPrefix("BRAMBLE")
	v.SetEnvKeyReplacer(strings.NewReplacer("-", "_"))
	v.AutomaticEnv()
	if err := v.BindPFlags(flags); err != nil {
		return settings{}, err
	}
	if err := readFile(v, flags); err != nil {
		return settings{}, err
	}
	built, err := time.Parse(time.RFC3339, api.BuildDate)
	if err != nil {
		return settings{}, fmt.Errorf("cannot read this program's build date %q: %w", api.BuildDate, err)
	}
	s := settings{server: server.Config{
		DataDir:          v.GetString("data-dir"),
		Listen:           v.GetString("listen"),
		Advertise:        v.GetString("advertise"),
		Kubeconfig:       v.GetString("kubeconfig"),
		ClusterCIDR:      v.GetString("cluster-cidr"),
		ServiceCIDR:      v.GetString("service-cidr"),
		NodeBits:         v.GetInt("node-bits"),
		NodeLeaseTimeout: v.GetDuration("node-lease-timeout"),
		ShutdownTimeout:  v.GetDuration("shutdown-timeout"),
		BuildDate:        built,
	}}
	if err := s.level.UnmarshalText([]byte(v.GetString("log-level"))); err != nil {
		return settings{}, fmt.Errorf("log-level: must be debug, info, warn or error, not %q", v.GetString("log-level"))
	}
	return s, s.server.Validate()
}

// readFile reads the configuration file and refuses keys that are no settings.
func readFile(v *viper.Viper, flags *pflag.FlagSet) error {
	path := v.GetString("config")
	v.SetConfigFile(path)
	v.SetConfigType("yaml")
	err := v.ReadInConfig()
	if errors.Is(err, fs.ErrNotExist) && path == defaultConfigFile {
		return nil
	}
	if err != nil {
		return hinted{fmt.Errorf("cannot read the configuration %s: %w", path, err), "it is YAML with one setting a line, such as  listen: :6443"}
	}
	var known []string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "config" && f.Name != "help" {
			known = append(known, f.Name)
		}
	})
	for _, key := range v.AllKeys() {
		if v.InConfig(key) && !slices.Contains(known, key) {
			return hinted{fmt.Errorf("%s: unknown setting %q", path, key), suggestion(key, known)}
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

// hint adds the way out of errors that have one.
func hint(err error) error {
	if errors.Is(err, os.ErrPermission) {
		return hinted{err, "run it as the user that owns --data-dir, or choose another with --data-dir"}
	}
	return err
}
