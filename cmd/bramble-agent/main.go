// Command bramble-agent runs a node of a Bramble cluster: it keeps the node's
// pods in rootless Podman, as an ordinary user.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newRoot().ExecuteContext(ctx); err != nil {
		printError(os.Stderr, err)
		os.Exit(1)
	}
}

// hinted is an error with what to do about it.
type hinted struct {
	error
	hint string
}

func (h hinted) Unwrap() error { return h.error }

func printError(w *os.File, err error) {
	fmt.Fprintln(w, "error:", err)
	if h, ok := err.(hinted); ok {
		fmt.Fprintln(w, "hint:", h.hint)
	}
}
