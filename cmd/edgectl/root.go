package main

import (
	"regexp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/plugin"
)

// name is what this program is called in every text that a user sees.
const name = "edgectl"

const about = `edgectl controls a Bramble cluster. It has all commands of kubectl, and beside them:

  backup   Save the server's database and authority to a file
  node     Revoke a node
  restore  Say whether the server runs on a restored backup, and confirm it
  token    Make and print the command that joins a node
  user     Make a user, and print a kubeconfig for them
  why      Say why a pod is where it is, or why it waits
  version  Print the versions of edgectl and of the server`

// newRoot returns kubectl's command tree under our name with our verbs in it.
// args is the whole command line: an unknown verb may be a plugin, which then
// replaces this process.
func newRoot(streams genericiooptions.IOStreams, args []string) *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true).
		WithDeprecatedPasswordFlag().WithDiscoveryBurst(300).WithDiscoveryQPS(50.0).
		WithWarningPrinter(streams)
	options := cmd.KubectlOptions{ConfigFlags: flags, IOStreams: streams, Arguments: args}
	root := cmd.NewKubectlCommand(options)
	root.Use = name
	root.Short = "edgectl controls a Bramble cluster"
	for _, c := range root.Commands() {
		if c.Name() == "version" {
			root.RemoveCommand(c)
		}
		if c.Name() == "cluster-info" {
			root.RemoveCommand(c)
			again := newClusterInfo(flags, streams)
			again.GroupID = c.GroupID
			root.AddCommand(again)
		}
	}
	root.AddCommand(newHw(flags, streams), newNode(flags, streams), newToken(flags, streams), newUser(flags, streams), newWhy(flags, streams), newVersion(flags, streams),
		newBackup(flags, streams), newRestore(flags, streams))
	root.Long = about
	rewordWhenShown(root, args)
	runPlugin(root, args, streams)
	return root
}

// runPlugin replaces this process by a plugin (edgectl-NAME, or kubectl-NAME)
// when args name no command of ours.
func runPlugin(root *cobra.Command, args []string, streams genericiooptions.IOStreams) {
	if len(args) < 2 {
		return
	}
	if _, _, err := root.Find(args[1:]); err == nil {
		return
	}
	switch args[1] {
	case "help", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd:
		return
	}
	handler := cmd.NewDefaultPluginHandler(append([]string{name}, plugin.ValidPluginFilenamePrefixes...))
	if err := cmd.HandlePluginCommand(handler, args[1:], 1); err != nil {
		fail(streams, err, "check that the plugin is executable, or see the commands there are: "+name+" --help")
	}
}

// kubectlWord finds the program's name, but not names that begin with it
// (kubectl-edit, kubectl.kubernetes.io) and not addresses (reference/kubectl/).
var kubectlWord = regexp.MustCompile(`(^|[^\w/.-])kubectl($|[^\w/.-]|[.](?:$|\s))`)

// kubectlFile finds the files that the help of completion has a shell read: by
// kubectl's names they would take the place of kubectl's own.
var kubectlFile = regexp.MustCompile(`(bash_completion\.d/|completions/|\$\{fpath\[1\]\}/_)kubectl\b`)

// reword puts our name where a text of kubectl's says kubectl.
func reword(text string) string {
	const once = "${1}" + name + "${2}"
	// Twice: neighbours share the character between them.
	text = kubectlWord.ReplaceAllString(kubectlWord.ReplaceAllString(text, once), once)
	return kubectlFile.ReplaceAllString(text, "${1}"+name)
}

// rewordWhenShown rewords the tree when it is to be read, in help, usage or
// completion: to do so at each call would take longer than many a command.
func rewordWhenShown(root *cobra.Command, args []string) {
	if len(args) > 1 && (args[1] == cobra.ShellCompRequestCmd || args[1] == "completion") {
		rewordTree(root.Commands()...)
		return
	}
	help, usage := root.HelpFunc(), root.UsageFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		rewordTree(c.Root().Commands()...)
		help(c, args)
	})
	root.SetUsageFunc(func(c *cobra.Command) error {
		rewordTree(c.Root().Commands()...)
		return usage(c)
	})
}

func rewordTree(commands ...*cobra.Command) {
	for _, c := range commands {
		for _, text := range []*string{&c.Short, &c.Long, &c.Example, &c.Deprecated} {
			*text = reword(*text)
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			f.Usage, f.Deprecated = reword(f.Usage), reword(f.Deprecated)
		})
		rewordTree(c.Commands()...)
	}
}
