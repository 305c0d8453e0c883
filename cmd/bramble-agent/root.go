package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"bramble.dev/bramble/cmd/settings"
	"bramble.dev/bramble/nodeagent"
	"bramble.dev/bramble/nodeagent/doctor"
	"bramble.dev/bramble/nodeagent/state"
	"bramble.dev/bramble/nodeagent/volume"
	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/systemd"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "bramble-agent",
		Short: "Run a node of a Bramble cluster",
		Long: "Run a node of a Bramble cluster, as an ordinary user, in rootless Podman.\n\n" +
			"Settings come from flags, from BRAMBLE_* in the environment (BRAMBLE_STATE_DIR for --state-dir)\n" +
			"and from " + defaultConfigFile + ", in this order. All of them have defaults that work.",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(newRun(), newJoin(), newHw(), newDoctor(), newMountVolumes(), &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(c.OutOrStdout(), "bramble-agent %s (built for %s/%s with %s)\n",
				api.BuildVersion, runtime.GOOS, runtime.GOARCH, runtime.Version())
			return err
		},
	})
	settings.HintUsage(root)
	return root
}

// newMountVolumes is what the agent has Podman run in its namespaces.
func newMountVolumes() *cobra.Command {
	return &cobra.Command{
		Use:    nodeagent.MountCommand,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(c *cobra.Command, _ []string) error { return volume.Inside(c.InOrStdin()) },
	}
}

func newRun() *cobra.Command {
	c := &cobra.Command{
		Use:   "run",
		Short: "Run this node's pods until told to stop; the pods run on",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkSelf(); err != nil {
				return err
			}
			cfg, err := readSettings(c.Flags())
			if err != nil {
				return err
			}
			return run(c.Context(), cfg)
		},
	}
	addRunFlags(c.Flags())
	return c
}

// run runs the agent until ctx ends.
func run(ctx context.Context, cfg nodeagent.Config) error {
	debug.SetGCPercent(20) // a board's memory is its pods'
	// Podman and the network process are to look where we do, also after a
	// login that set nothing (su, cron).
	if err := os.Setenv("XDG_RUNTIME_DIR", cfg.RuntimeDir); err != nil {
		return err
	}
	quietLibraries(cfg.Log)
	agent, err := nodeagent.New(cfg)
	if errors.Is(err, state.ErrNotJoined) {
		return settings.Hint(fmt.Errorf("%w (looked in %s)", err, cfg.StateDir),
			"run `edgectl token create` where the cluster is administered, and then the command that it prints here")
	}
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	ctx, cancel := context.WithCancel(ctx)
	group.Go(func() error {
		defer cancel() // the agent's end is the end
		return agent.Run(ctx)
	})
	group.Go(func() error {
		warn := func(err error) {
			if err != nil {
				cfg.Log.Warn("service manager not told", "err", err)
			}
		}
		warn(systemd.Ready())
		warn(systemd.Watchdog(ctx, func(context.Context) error { return nil }))
		<-ctx.Done()
		warn(systemd.Stopping())
		return nil
	})
	err = group.Wait()
	if errors.Is(err, state.ErrInUse) {
		return settings.Hint(err, "stop the other one first (systemctl --user stop bramble-agent, or by its process); each node has one agent and a --state-dir of its own")
	}
	return err
}

// quietLibraries has in our log, for those who look closely, what libraries would
// write to stderr: client-go's complaints of a server out of reach, where the tunnel
// has said it already, and net/http's of answers to probes that it did not expect,
// which a pod could fill the disk with.
func quietLibraries(log *slog.Logger) {
	slog.SetLogLoggerLevel(slog.LevelDebug)
	slog.SetDefault(log)
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(_ context.Context, err error, message string, _ ...any) { log.Debug(message, "err", err) },
	}
}

// checkSelf refuses a user who cannot be a node's.
func checkSelf() error {
	if err := checkUser(os.Getuid(), "/proc/self/uid_map"); err != nil {
		return err
	}
	self, err := user.Current()
	if err != nil {
		return fmt.Errorf("cannot tell which user this is: %w", err)
	}
	return checkSubordinate("/", self)
}

// checkSubordinate refuses a user without subordinate ids.
func checkSubordinate(root string, u *user.User) error {
	if f := doctor.Subordinate(root, u); f.Level == doctor.Fatal {
		return settings.Hint(errors.New(f.Message), f.Fix)
	}
	return nil
}

// checkUser refuses root and user namespaces: rootless Podman is a user's own,
// and the agent must stand outside the namespace that its containers run in.
func checkUser(uid int, uidMap string) error {
	if uid == 0 {
		return settings.Hint(errors.New("bramble-agent does not run as root: its pods belong to an ordinary user"),
			"install the package, which makes the user bramble, or make one (useradd -m bramble; loginctl enable-linger bramble) and run: sudo -iu bramble bramble-agent ...")
	}
	data, err := os.ReadFile(uidMap)
	if err != nil {
		return fmt.Errorf("cannot tell which user namespace this is: %w", err)
	}
	if strings.Join(strings.Fields(string(data)), " ") != "0 0 4294967295" {
		return settings.Hint(errors.New("bramble-agent does not run inside a user namespace"), "do not start it by `podman unshare` or inside a rootless container")
	}
	return nil
}
