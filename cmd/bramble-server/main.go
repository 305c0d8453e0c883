// Command bramble-server is Bramble's API server: a Kubernetes API for boards,
// with its store, scheduler and controllers, in one process.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"bramble.dev/bramble/cmd/settings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newRoot().ExecuteContext(ctx); err != nil {
		settings.Print(os.Stderr, err)
		os.Exit(1)
	}
}
