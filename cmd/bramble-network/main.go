// Command bramble-network is the network process of a node. It is run by the
// node's ordinary user and enters the user and mount namespaces of that user's
// rootless Podman by itself.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"bramble.dev/bramble/nodeagent/network"
	"bramble.dev/bramble/nodeagent/network/userns"
)

// version is set at build time by -ldflags "-X main.version=...".
var version = "dev"

const usage = `bramble-network holds the network of this node's pods.

usage:
  bramble-network run     serve the agent over $XDG_RUNTIME_DIR/bramble/network.sock
  bramble-network clean   stop it and remove all that it made for this user
  bramble-network version

options of run and clean:
`

func main() {
	runtime.LockOSThread() // keep the leader thread out of other namespaces
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

type options struct {
	runtimeDir string
	plugins    string
	resolvConf string
	debug      bool
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o options
	flags := flag.NewFlagSet("bramble-network", flag.ContinueOnError)
	flags.StringVar(&o.plugins, "plugins", defaultPlugins(), "directory of the CNI plugins bridge and static")
	flags.StringVar(&o.resolvConf, "resolv-conf", "/etc/resolv.conf", "the host's resolvers, which pods' DNS queries are passed to")
	flags.BoolVar(&o.debug, "debug", false, "log more")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	if len(args) == 0 {
		flags.Usage()
		return errors.New("say what to do: run, clean or version")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is one argument too many", flags.Arg(0))
	}
	if o.runtimeDir = os.Getenv("XDG_RUNTIME_DIR"); !filepath.IsAbs(o.runtimeDir) {
		return errors.New("XDG_RUNTIME_DIR is not set to an absolute path: log in as the node's user, or `loginctl enable-linger` it")
	}
	switch args[0] {
	case "run":
		return enter(ctx, o, args)
	case "run-inside": // what run becomes
		return serve(ctx, o)
	case "clean":
		return clean(ctx, o, args)
	case "clean-inside":
		return network.Clean(ctx, o.runtimeDir)
	case "version":
		_, err := fmt.Fprintln(out, version)
		return err
	}
	flags.Usage()
	return fmt.Errorf("%q is none of run, clean and version", args[0])
}

// defaultPlugins is where the package puts them, or beside this program.
func defaultPlugins() string {
	const packaged = "/usr/lib/bramble/cni"
	if _, err := os.Stat(packaged); err == nil {
		return packaged
	}
	exe, err := os.Executable()
	if err != nil {
		return packaged
	}
	return filepath.Join(filepath.Dir(exe), "cni")
}

// enter becomes `run-inside` in Podman's namespaces, with the same process id.
func enter(ctx context.Context, o options, args []string) error {
	pid, err := userns.PausePID(o.runtimeDir)
	if errors.Is(err, userns.ErrNoPause) {
		pid, err = userns.MakePause(ctx, o.runtimeDir)
	}
	if err != nil {
		return err
	}
	return become("run-inside", pid, args)
}

func serve(ctx context.Context, o options) error {
	level := slog.LevelInfo
	if o.debug {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	log.Info("bramble-network runs", "version", version, "pid", os.Getpid())
	return network.New(network.Config{
		RuntimeDir: o.runtimeDir, PluginDir: o.plugins, ResolvConf: o.resolvConf, Version: version, Log: log,
	}).Run(ctx)
}

// clean removes all from inside Podman's namespaces, which hold the pins, or
// from outside where Podman has none.
func clean(ctx context.Context, o options, args []string) error {
	pid, err := userns.PausePID(o.runtimeDir)
	if errors.Is(err, userns.ErrNoPause) {
		return network.Clean(ctx, o.runtimeDir)
	}
	if err != nil {
		return err
	}
	return become("clean-inside", pid, args)
}

// become replaces this process by another of its commands inside the
// namespaces that process pid holds.
func become(command string, pid int, args []string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	argv := append([]string{exe, command}, args[1:]...)
	return userns.Exec(pid, argv, os.Environ())
}
