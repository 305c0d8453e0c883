package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"

	"bramble.dev/bramble/server/api"
)

func newNode(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	node := &cobra.Command{
		Use:   "node",
		Short: "Revoke a node",
		Args:  onlyCommands,
		Run:   func(c *cobra.Command, _ []string) { _ = c.Help() },
	}
	node.AddCommand(newNodeRevoke(flags, streams))
	return node
}

func newNodeRevoke(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NAME",
		Short: "Let a node's certificates end at once",
		Long: "Let a node's certificates end at once: for a board that was stolen, or whose card was read.\n\n" +
			"Its connections are cut, and the server takes neither its requests nor its renewal any more.\n" +
			"The Node stays, marked by the annotation and the taint " + api.RevokedKey + "; no new pods\n" +
			"are placed there. What ran on the board runs on: the server cannot reach it.\n\n" +
			"The node comes back by joining again under its name, with a token that is made after this.",
		Example: "  # End it\n  edgectl node revoke kitchen\n\n" +
			"  # Let it come back: here\n  edgectl token create\n  # and on the board, as the node's user, what that printed, then restart the agent\n" +
			"  bramble-agent join --server 192.168.1.10:6443 bramble1.…\n\n" +
			"  # Or forget it\n  edgectl delete node kitchen",
		Args: oneArgument("NAME"),

		ValidArgsFunction: completion.ResourceNameCompletionFunc(cmdutil.NewFactory(flags), "node"),
		Run: func(c *cobra.Command, args []string) {
			var answer api.RevokeResponse
			if err := call(c.Context(), flags, api.RevokePath, api.RevokeRequest{NodeName: args[0]}, &answer); err != nil {
				fail(streams, fmt.Errorf("cannot revoke node %s: %w", args[0], err), hintFor(err, "see the nodes there are: edgectl get nodes"))
			}
			fmt.Fprintf(streams.Out, "node %s revoked\n", answer.NodeName)
			fmt.Fprintf(streams.ErrOut, "hint: it may come back by joining again with a new token (edgectl token create); to forget it: edgectl delete node %s\n", answer.NodeName)
		},
	}
}
