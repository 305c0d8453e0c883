// Command edgectl is kubectl for Bramble: all of kubectl's commands, by
// kubectl's own packages, and beside them what only Bramble has (backup, node, restore,
// token, user, why).
package main

import (
	"fmt"
	"os"
	"strings"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/component-base/cli"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	cmdutil.BehaviorOnFatal(func(message string, code int) {
		if message != "" {
			fmt.Fprintln(os.Stderr, strings.TrimSuffix(reword(message), "\n"))
			if hint := kubectlHint(message); hint != "" {
				fmt.Fprintln(os.Stderr, "hint: "+hint)
			}
		}
		os.Exit(code)
	})
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	root := newRoot(streams, os.Args)
	if err := cli.RunNoErrOutput(root); err != nil {
		cmdutil.CheckErr(err)
	}
}
