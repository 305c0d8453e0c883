// Command bramble-agent runs a node of a Bramble cluster: it keeps the node's
// pods in rootless Podman, as an ordinary user.
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
