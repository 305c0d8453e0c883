package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"bramble.dev/bramble/server/api"
)

func newRestore(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	confirm := false
	c := &cobra.Command{
		Use:   "restore",
		Short: "Say whether the server runs on a restored backup, and confirm it",
		Long: "Say whether the server runs on a restored backup, and confirm it.\n\n" +
			"After \"bramble-server restore FILE\" the nodes keep every pod that they run, also those\n" +
			"that the backup does not know, until --confirm says that the restored database takes\n" +
			"the place of the lost one. Look first at what runs: edgectl get pods,nodes -A.",
		Example: "  edgectl restore\n  edgectl restore --confirm",
		Args:    cobra.NoArgs,
		Run: func(c *cobra.Command, _ []string) {
			var body any
			verb := "ask about"
			if confirm {
				body, verb = struct{}{}, "confirm"
			}
			var status api.RestoreStatus
			if err := call(c.Context(), flags, api.RestorePath, body, &status); err != nil {
				fail(streams, fmt.Errorf("cannot %s the restore: %w", verb, err), hintFor(err, "the server is no Bramble server"))
			}
			fmt.Fprintln(streams.Out, describeRestore(status))
		},
	}
	c.Flags().BoolVar(&confirm, "confirm", false, "the restored database takes the place of the lost one: nodes stop what it does not have")
	return c
}

func describeRestore(s api.RestoreStatus) string {
	switch {
	case len(s.Follows) == 0:
		return "the database is no restored backup: there is nothing to confirm"
	case s.Confirmed:
		return "the restored database " + s.Epoch + " is confirmed: nodes follow it"
	}
	return "the restored database " + s.Epoch + " is not confirmed: nodes keep all that they run until: edgectl restore --confirm"
}
