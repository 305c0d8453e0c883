package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// oneArgument refuses a command line without exactly one argument, and says
// which is wanted.
func oneArgument(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		return fmt.Errorf("%s needs one %s, and got %d\nhint: see %s --help", c.CommandPath(), what, len(args), c.CommandPath())
	}
}

// onlyCommands refuses an argument that names no command below c, and says
// which there are.
func onlyCommands(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var there []string
	for _, sub := range c.Commands() {
		there = append(there, c.CommandPath()+" "+sub.Use)
	}
	return fmt.Errorf("unknown command %q for %q\nhint: there is: %s", args[0], c.CommandPath(), strings.Join(there, ", "))
}
