package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"bramble.dev/bramble/cmd/settings"
	"bramble.dev/bramble/server"
	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/systemd"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "bramble-server",
		Short: "Serve the Kubernetes API of a Bramble cluster",
		Long: "Serve the Kubernetes API of a Bramble cluster.\n\n" +
			"Settings come from flags, from BRAMBLE_* in the environment (BRAMBLE_DATA_DIR for --data-dir)\n" +
			"and from " + defaultConfigFile + ", in this order. All of them have defaults that work.",
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := readSettings(c.Flags())
			if err != nil {
				return err
			}
			return run(c.Context(), cfg)
		},
	}
	addFlags(root.Flags())
	root.AddCommand(newRestore())
	root.AddCommand(&cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(c.OutOrStdout(), "bramble-server %s (built for %s/%s with %s)\n",
				api.BuildVersion, runtime.GOOS, runtime.GOARCH, runtime.Version())
			return err
		},
	})
	settings.HintUsage(root)
	return root
}

// run serves until ctx ends.
func run(ctx context.Context, cfg config) error {
	debug.SetGCPercent(20) // a board's memory is its pods'
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: cfg.level}))
	listeners, err := systemd.Listeners()
	if err != nil {
		return err
	}
	srv, err := server.New(cfg.server, listeners, log)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	ctx, cancel := context.WithCancel(ctx)
	group.Go(func() error {
		defer cancel() // the server's end is the end
		return srv.Run(ctx)
	})
	group.Go(func() error { return tellSystemd(ctx, srv, log) })
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return hint(err)
	}
	return nil
}

// tellSystemd reports readiness, health and the stop.
func tellSystemd(ctx context.Context, srv *server.Server, log *slog.Logger) error {
	select {
	case <-srv.Ready():
	case <-ctx.Done():
		return nil
	}
	report := func(err error) {
		if err != nil {
			log.Warn("service manager not told", "err", err)
		}
	}
	report(systemd.Ready())
	report(systemd.Watchdog(ctx, func(ctx context.Context) error { return answers(ctx, srv.Address()) }))
	<-ctx.Done()
	report(systemd.Stopping())
	return nil
}

// answers says whether the API accepts connections.
func answers(ctx context.Context, address string) error {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("cannot reach the API: %w", err)
	}
	return conn.Close()
}
