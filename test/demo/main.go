// Command demo runs a whole Bramble on this machine: a server, a rootless node
// as a user of its own, and the pod of examples/hello.yaml. `make demo` calls
// it with "up", `make demo-stop` with "down". It is no part of the product.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string) int {
	if len(args) != 1 || args[0] != "up" && args[0] != "down" {
		fmt.Fprintln(os.Stderr, "usage: demo up|down")
		return 2
	}
	if os.Getuid() != 0 {
		fmt.Fprintln(os.Stderr, "error: the demo makes a user, which needs root\nhint: run `make demo`, which calls sudo if it is installed; or be root")
		return 1
	}
	root, err := os.Getwd()
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		return 1
	}
	d := &demo{root: root, bin: filepath.Join(root, "bin"), address: "127.0.0.1:16443"}
	if port := os.Getenv("DEMO_PORT"); port != "" {
		d.address = "127.0.0.1:" + port
	}
	steps := d.up()
	if args[0] == "down" {
		steps = d.down()
	}
	for i, s := range steps {
		fmt.Printf("[%d/%d] %s\n", i+1, len(steps), s.what)
		if err := s.do(ctx); err != nil {
			fmt.Fprintf(os.Stderr, "error: %v\nhint: %s\n", err, s.hint)
			return 1
		}
	}
	fmt.Print(d.farewell(args[0]))
	return 0
}
