package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"
	"sigs.k8s.io/yaml"

	"bramble.dev/bramble/server/api"
)

func newWhy(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	why := &cobra.Command{
		Use:   "why",
		Short: "Say why a pod is where it is, or why it waits",
		Args:  onlyCommands,
		Run:   func(c *cobra.Command, _ []string) { _ = c.Help() },
	}
	var output string
	pod := &cobra.Command{
		Use:     "pod NAME",
		Aliases: []string{"pods", "po"},
		Short:   "Say why a pod is where it is, or why it waits",
		Example: "  edgectl why pod hello\n  edgectl why pod hello -o yaml",
		Args:    oneArgument("NAME"),

		ValidArgsFunction: completion.ResourceNameCompletionFunc(cmdutil.NewFactory(flags), "pod"),
		Run: func(c *cobra.Command, args []string) {
			if strings.Contains(args[0], "/") {
				fail(streams, fmt.Errorf("%q is no pod's name", args[0]), "give the name alone, and its namespace with -n")
			}
			if !slices.Contains([]string{"", "json", "yaml"}, output) {
				fail(streams, fmt.Errorf("unknown output %q", output), "use -o json, -o yaml, or none")
			}
			namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
			if err != nil {
				fail(streams, err, hintFor(err, ""))
			}
			var p api.Placement
			path := fmt.Sprintf("/apis/%s/%s/namespaces/%s/placements/%s", api.Group, api.Version, namespace, args[0])
			if err := call(c.Context(), flags, path, nil, &p); err != nil {
				fail(streams, fmt.Errorf("cannot read the placement of pod %s/%s: %w", namespace, args[0], err),
					hintFor(err, "see the pods there are: edgectl get pods -A"))
			}
			printPlacement(streams.Out, p, output)
		},
	}
	pod.Flags().StringVarP(&output, "output", "o", "", "json or yaml: print the whole object")
	why.AddCommand(pod)
	return why
}

// printPlacement writes p as a person reads it, or whole as JSON or YAML.
func printPlacement(w io.Writer, p api.Placement, output string) {
	switch output {
	case "json":
		data, _ := json.MarshalIndent(p, "", "  ")
		fmt.Fprintf(w, "%s\n", data)
		return
	case "yaml":
		data, _ := yaml.Marshal(p)
		fmt.Fprintf(w, "%s", data)
		return
	}
	s := p.Status
	where := "waits"
	if s.NodeName != "" {
		where = "is on node " + s.NodeName
	}
	fmt.Fprintf(w, "Pod %s/%s %s: %s\n", p.Namespace, p.Name, where, s.Message)
	if s.Basis == api.PlacementNow && len(s.Nodes) > 0 {
		fmt.Fprintln(w, "(The decision itself is not known any more; this is how the nodes look now.)")
	}
	if len(s.Nodes) == 0 {
		return
	}
	tw := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	fmt.Fprintln(tw, "NODE\tFITS\tSCORE\tWHY")
	for _, n := range s.Nodes {
		if !n.Fits {
			fmt.Fprintf(tw, "%s\tno\t-\t%s\n", n.Name, strings.Join(n.Reasons, ", "))
			continue
		}
		words := scoreWords(n.Scores)
		if len(n.Waived) > 0 {
			words = "although it " + strings.Join(n.Waived, " and ") + ": " + words
		}
		fmt.Fprintf(tw, "%s\tyes\t%d\t%s\n", n.Name, n.Score, words)
	}
	_ = tw.Flush()
}

// scoreWords says a node's scores in a line: "LeastAllocated 84 (cpu 12 %)".
func scoreWords(scores []api.PlacementScore) string {
	words := make([]string, 0, len(scores))
	for _, s := range scores {
		word := fmt.Sprintf("%s %d", s.Plugin, s.Score)
		if s.Detail != "" {
			word += " (" + s.Detail + ")"
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}
