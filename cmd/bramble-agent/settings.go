package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"bramble.dev/bramble/nodeagent"
	"bramble.dev/bramble/server/api"
)

const defaultConfigFile = "/etc/bramble/agent.yaml"

// addRunFlags defines every setting: the file and the environment know no others.
func addRunFlags(flags *pflag.FlagSet) {
	d := nodeagent.Default()
	flags.String("config", defaultConfigFile, "the configuration file; it may be missing unless named here")
	flags.String("state-dir", d.StateDir, "where the node's identity, its record of pods and their volumes are")
	flags.String("podman-socket", "", "Podman's API socket, served by the agent's own hand where nobody does (default: podman/podman.sock in $XDG_RUNTIME_DIR)")
	flags.String("network", d.NetworkBin, "the bramble-network program; empty: it is run by somebody else")
	flags.String("pause", d.PauseFile, "the static program that holds a pod")
	flags.Duration("patience", d.Patience, "how long to wait at the start for the server before the pods of the local record are run")
	flags.String("log-level", "info", "debug, info, warn or error")
}

// readSettings merges flags over environment over file over defaults.
func readSettings(flags *pflag.FlagSet) (nodeagent.Config, error) {
	v := viper.New()
	v.SetEnvPrefix("BRAMBLE")
	v.SetEnvKeyReplacer(strings.NewReplacer("-", "_"))
	v.AutomaticEnv()
	if err := v.BindPFlags(flags); err != nil {
		return nodeagent.Config{}, err
	}
	if err := readFile(v, flags); err != nil {
		return nodeagent.Config{}, err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(v.GetString("log-level"))); err != nil {
		return nodeagent.Config{}, fmt.Errorf("log-level: must be debug, info, warn or error, not %q", v.GetString("log-level"))
	}
	cfg := nodeagent.Default()
	cfg.StateDir = v.GetString("state-dir")
	cfg.PodmanSocket = v.GetString("podman-socket")
	cfg.NetworkBin = v.GetString("network")
	cfg.PauseFile = v.GetString("pause")
	cfg.Patience = v.GetDuration("patience")
	cfg.Version = api.BuildVersion
	cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	return cfg, nil
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
		return hinted{fmt.Errorf("cannot read the configuration %s: %w", path, err), "it is YAML with one setting a line, such as  log-level: debug"}
	}
	var known []string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "config" && f.Name != "help" {
			known = append(known, f.Name)
		}
	})
	for _, key := range v.AllKeys() {
		if v.InConfig(key) && !slices.Contains(known, key) {
			return hinted{fmt.Errorf("%s: unknown setting %q", path, key), "the settings are " + strings.Join(known, ", ")}
		}
	}
	return nil
}
