package main

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"bramble.dev/bramble/cmd/settings"
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
	flags.String("container-log-max-size", resource.NewQuantity(d.LogMaxBytes, resource.BinarySI).String(), "the size at which a container's log is rotated, as 5Mi")
	flags.Int("container-log-max-files", d.LogMaxFiles, "how many files a container's log may have, at least 2")
	flags.Int("max-pods", d.MaxPods, "how many pods the node takes")
	flags.String("hw-root", "", "report the recorded board in this folder, which has its proc and sys, instead of this one: for trials")
	flags.String("log-level", "info", "debug, info, warn or error")
}

// readSettings merges flags over environment over file over defaults.
func readSettings(flags *pflag.FlagSet) (nodeagent.Config, error) {
	v, err := settings.Read(flags)
	if err != nil {
		return nodeagent.Config{}, err
	}
	level, err := settings.Level(v)
	if err != nil {
		return nodeagent.Config{}, err
	}
	cfg := nodeagent.Default()
	cfg.StateDir = v.GetString("state-dir")
	cfg.PodmanSocket = v.GetString("podman-socket")
	cfg.NetworkBin = v.GetString("network")
	cfg.PauseFile = v.GetString("pause")
	cfg.Patience = v.GetDuration("patience")
	size, err := resource.ParseQuantity(v.GetString("container-log-max-size"))
	if err != nil {
		return nodeagent.Config{}, fmt.Errorf("container-log-max-size: cannot read %q: write a size as 5Mi", v.GetString("container-log-max-size"))
	}
	cfg.LogMaxBytes = size.Value()
	cfg.LogMaxFiles = v.GetInt("container-log-max-files")
	cfg.MaxPods = v.GetInt("max-pods")
	if cfg.HWRoot = v.GetString("hw-root"); cfg.HWRoot != "" {
		if err := checkRoot(cfg.HWRoot); err != nil {
			return nodeagent.Config{}, err
		}
	}
	cfg.Version = api.BuildVersion
	cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	return cfg, nil
}
