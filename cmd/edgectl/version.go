package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"bramble.dev/bramble/server/api"
)

func newVersion(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	var clientOnly bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of edgectl and of the server",
		Args:  cobra.NoArgs,
		Run: func(c *cobra.Command, _ []string) {
			fmt.Fprintf(streams.Out, "edgectl %s (%s/%s)\n", api.BuildVersion, runtime.GOOS, runtime.GOARCH)
			if clientOnly {
				return
			}
			var v apiversion.Info
			if err := call(c.Context(), flags, "/version", nil, &v); err != nil {
				fail(streams, fmt.Errorf("cannot ask the server for its version: %w", err), hintFor(err, "the server is no Bramble server"))
			}
			fmt.Fprintf(streams.Out, "server  %s (%s)\n", v.GitVersion, v.Platform)
		},
	}
	c.Flags().BoolVar(&clientOnly, "client", false, "print edgectl's own version only")
	return c
}
