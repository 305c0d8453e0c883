package main

import (
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/clusterinfo"
)

// newClusterInfo is kubectl's cluster-info, whose own output says kubectl. What
// its dump prints are objects, which nobody rewords.
func newClusterInfo(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	reworded := streams
	reworded.Out = rewordingWriter{streams.Out}
	c := clusterinfo.NewCmdClusterInfo(flags, reworded)
	c.RemoveCommand(c.Commands()...)
	c.AddCommand(clusterinfo.NewCmdClusterInfoDump(flags, streams))
	return c
}

// rewordingWriter passes on what it is given, piece by piece, with our name in it.
type rewordingWriter struct{ to io.Writer }

func (w rewordingWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.to, reword(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
