package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"bramble.dev/bramble/cmd/settings"
	"bramble.dev/bramble/hw"
	"bramble.dev/bramble/nodeagent"
	"bramble.dev/bramble/nodeagent/doctor"
	"bramble.dev/bramble/nodeagent/state"
	"bramble.dev/bramble/server/client"
)

// nodeUser is the user that the packages make.
const nodeUser = "bramble"

type doctorOptions struct {
	user, stateDir, root string
	asJSON               bool
}

// newDoctor is a look for what keeps this board from being a good node.
func newDoctor() *cobra.Command {
	var o doctorOptions
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say what keeps this board from being a good node, and what to change",
		Long: "Say what keeps this board from being a good node, and for each thing the one line to change.\n\n" +
			"Run it as the node's user, or as root, who is told of the user bramble what files say. It needs\n" +
			"no cluster. It changes nothing: it writes to a file of the state directory's storage that has no\n" +
			"name, to see how long that takes, and asks Podman, which may begin to use its folders.\n" +
			"The exit status is 1 if something stops the node, and else 0.",
		Example: "  bramble-agent doctor\n  sudo bramble-agent doctor --user pi\n  bramble-agent doctor --json | jq -r '.[].fix // empty'",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkRoot(o.root); err != nil {
				return err
			}
			place, err := doctorPlace(o)
			if err != nil {
				return err
			}
			return examine(c.Context(), c.OutOrStdout(), place, o.asJSON)
		},
	}
	c.Flags().StringVar(&o.user, "user", "", "the node's user (default: who runs this; of root, "+nodeUser+")")
	c.Flags().StringVar(&o.stateDir, "state-dir", "", "where the node's state is or will be (default: as of bramble-agent run)")
	c.Flags().StringVar(&o.root, "hw-root", "", "of the hardware, look at the recorded board in this folder")
	c.Flags().BoolVar(&o.asJSON, "json", false, "print JSON")
	return c
}

// doctorPlace is this machine, with the node's user as far as that is known.
func doctorPlace(o doctorOptions) (doctor.Place, error) {
	p := doctor.Place{BoardRoot: o.root, StateDir: o.stateDir, Run: doctor.Execute, Measure: true}
	self, err := user.LookupId(strconv.Itoa(os.Getuid()))
	if err != nil {
		return p, fmt.Errorf("cannot tell which user this is: %w", err)
	}
	switch {
	case o.user != "":
		if p.User, err = user.Lookup(o.user); err != nil {
			return p, settings.Hint(fmt.Errorf("--user: there is no user %s", o.user), "sudo useradd --create-home "+o.user)
		}
	case self.Uid != "0":
		p.User = self
	default:
		if u, err := user.Lookup(nodeUser); err == nil {
			p.User = u
		}
	}
	if p.User != nil && p.User.Uid == "0" {
		return p, settings.Hint(errors.New("--user: root cannot be a node's user"), "name an ordinary one")
	}
	p.Self = p.User != nil && p.User.Uid == self.Uid
	if p.Self {
		p.RuntimeDir = os.Getenv("XDG_RUNTIME_DIR")
	}
	p.StateDir = cmp.Or(p.StateDir, stateDirOf(p))
	if facts, err := state.ReadFacts(p.StateDir); err == nil {
		p.Servers = facts.Servers
		if identity, err := state.ReadIdentity(p.StateDir); err == nil {
			p.TLS, _ = client.TLSConfig(identity.CA, tls.Certificate{}, nil) // of a damaged one nothing is asked
		}
	}
	return p, nil
}

// stateDirOf is where the user's agent keeps its state.
func stateDirOf(p doctor.Place) string {
	switch {
	case p.Self:
		return nodeagent.DefaultStateDir()
	case p.User == nil || isDir(nodeagent.SystemStateDir):
		return nodeagent.SystemStateDir
	}
	return nodeagent.UserStateDir(p.User.HomeDir)
}

// examine prints what is found; an error says that something stops the node.
func examine(ctx context.Context, w io.Writer, place doctor.Place, asJSON bool) error {
	board := hw.Open(hw.Config{Root: place.BoardRoot})
	defer board.Close()
	snapshot := board.Sample(ctx)
	all := doctor.Diagnose(place.Look(ctx, snapshot))
	if asJSON {
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(all); err != nil {
			return err
		}
	} else if err := printFindings(w, whose(place, snapshot), all); err != nil {
		return err
	}
	if doctor.Stops(all) {
		return errors.New("this board cannot be a node yet")
	}
	return nil
}

// whose says of which board and user the findings are.
func whose(p doctor.Place, s hw.Snapshot) string {
	board := cmp.Or(s.Identity.Model, "this machine")
	switch {
	case p.User == nil:
		return board + ", as root"
	case p.Self:
		return board + ", user " + p.User.Username
	}
	return board + ", user " + p.User.Username + " (as another)"
}

var headings = []struct {
	level doctor.Level
	text  string
}{
	{doctor.Fatal, "This stops the node:"}, {doctor.Warning, "This makes a worse node of it:"}, {doctor.Note, "Good to know:"},
	{doctor.Unknown, "Could not be told:"}, {doctor.Fine, "Fine:"},
}

// printFindings writes findings for people, with the line that changes each below it.
func printFindings(w io.Writer, whose string, all []doctor.Finding) error {
	out := &counted{w: w}
	out.add("%s\n", whose)
	for _, h := range headings {
		first := true
		for _, f := range all {
			if f.Level != h.level {
				continue
			}
			if first {
				out.add("\n%s\n", h.text)
				first = false
			}
			if f.Level == doctor.Fine { // its name is that of what is not wrong
				out.add("  %s\n", f.Message)
				continue
			}
			out.add("  %s: %s\n", f.Check, f.Message)
			if f.Fix != "" {
				out.add("      %s\n", f.Fix)
			}
		}
	}
	switch {
	case doctor.Stops(all):
	case slices.ContainsFunc(all, func(f doctor.Finding) bool { return f.Level == doctor.Unknown }):
		out.add("\nNothing that could be told stops the node.\n")
	default:
		out.add("\nNothing stops the node.\n")
	}
	return out.err
}

// counted writes until it cannot.
type counted struct {
	w   io.Writer
	err error
}

func (c *counted) add(format string, args ...any) {
	if c.err == nil {
		_, c.err = fmt.Fprintf(c.w, format, args...)
	}
}
