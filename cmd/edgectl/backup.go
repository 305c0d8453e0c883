package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

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
		Args:    cobra.ExactArgs(1),
		Run: func(c *cobra.Command, args []string) {
			written, err := saveBackup(c.Context(), flags, args[0])
			if err != nil {
				fail(streams, fmt.Errorf("cannot back up to %s: %w", args[0], err), hintFor(err, "the server is no Bramble server"))
			}
			fmt.Fprintf(streams.Out, "%s: %d bytes\n", args[0], written)
		},
	}
}

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
	f, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+"-*") // mode 0600
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
