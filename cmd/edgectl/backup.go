package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"bramble.dev/bramble/server/api"
)

func newBackup(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Save the server's database and authority to a file",
		Long: "Save the server's database and authority to a file, while the server goes on.\n\n" +
			"The file has all Secrets and the authority's key in it: who has it has the cluster.\n" +
			"Put it back with \"bramble-server restore FILE\" on a machine where no server runs.",
		Example: "  edgectl backup bramble-$(date +%F).tar.gz",
		Args:    oneArgument("FILE"),
		Run: func(c *cobra.Command, args []string) {
			written, err := saveBackup(c.Context(), flags, args[0])
			if err != nil {
				fail(streams, fmt.Errorf("cannot back up to %s: %w", args[0], err), backupHint(err, args[0]))
			}
			fmt.Fprintf(streams.Out, "%s: %d bytes\n", args[0], written)
		},
	}
}

// backupHint says what to do about an error of saveBackup, which may be one of
// the file and not of the server.
func backupHint(err error, target string) string {
	var file *fs.PathError
	var rename *os.LinkError
	if errors.As(err, &rename) || errors.As(err, &file) && strings.HasPrefix(filepath.Base(file.Path), besides(target)) {
		return "name a file in a directory that exists, may be written and has room"
	}
	return hintFor(err, "the server is no Bramble server")
}

// besides is how the name of the file begins that target is made from.
func besides(target string) string { return "." + filepath.Base(target) + "-" }

// saveBackup downloads to a file beside the target, which takes its place once
// it is whole.
func saveBackup(ctx context.Context, flags *genericclioptions.ConfigFlags, target string) (written int64, err error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return 0, err
	}
	client, err := rest.UnversionedRESTClientFor(withCodec(config))
	if err != nil {
		return 0, err
	}
	body, err := client.Get().AbsPath(api.BackupPath).Stream(ctx)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	f, err := os.CreateTemp(filepath.Dir(target), besides(target)+"*") // mode 0600
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	written, err = io.Copy(f, body)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), target)
	}
	return written, err
}
