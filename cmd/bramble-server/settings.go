package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"bramble.dev/bramble/cmd/settings"
	"bramble.dev/bramble/server"
	"bramble.dev/bramble/server/api"
)

const defaultConfigFile = "/etc/bramble/server.yaml"

// config is all that the command can be told.
type config struct {
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
	flags.Duration("node-certificate-life", d.NodeCertificateLife, "how long a node's certificate is valid; nodes renew theirs at two thirds of it")
	flags.Duration("shutdown-timeout", d.ShutdownTimeout, "how long requests may take to end at a stop; a client that holds on makes it take all of it")
	flags.String("log-level", "info", "debug, info, warn or error")
}

// readSettings merges flags over environment over file over defaults.
func readSettings(flags *pflag.FlagSet) (config, error) {
	v, err := settings.Read(flags)
	if err != nil {
		return config{}, err
	}
	built, err := time.Parse(time.RFC3339, api.BuildDate)
	if err != nil {
		return config{}, fmt.Errorf("cannot read this program's build date %q: %w", api.BuildDate, err)
	}
	c := config{server: server.Config{
		DataDir:          v.GetString("data-dir"),
		Listen:           v.GetString("listen"),
		Advertise:        v.GetString("advertise"),
		Kubeconfig:       v.GetString("kubeconfig"),
		ClusterCIDR:      v.GetString("cluster-cidr"),
		ServiceCIDR:      v.GetString("service-cidr"),
		NodeBits:         v.GetInt("node-bits"),
		NodeLeaseTimeout: v.GetDuration("node-lease-timeout"),
		ShutdownTimeout:  v.GetDuration("shutdown-timeout"),

		NodeCertificateLife: v.GetDuration("node-certificate-life"),
		BuildDate:           built,
	}}
	if c.level, err = settings.Level(v); err != nil {
		return config{}, err
	}
	return c, c.server.Validate()
}

// hint adds the way out of errors that have one.
func hint(err error) error {
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "listen":
		return err // it says so itself
	case errors.Is(err, syscall.ENOSPC):
		return settings.Hint(err, "the disk of --data-dir is full: make room on it (df -h and df -i say how much there is) and start again; nothing is lost")
	case errors.Is(err, syscall.EROFS):
		return settings.Hint(err, "the disk of --data-dir takes no writes; the kernel does that to a card that fails (see dmesg): mount it writable, or replace it and restore a backup")
	case errors.Is(err, os.ErrPermission):
		return settings.Hint(err, "run it as the user that owns --data-dir, or choose another with --data-dir")
	}
	return err
}
