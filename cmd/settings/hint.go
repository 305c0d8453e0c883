package settings

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// hinted is an error with what to do about it.
type hinted struct {
	error
	hint string
}

func (h hinted) Unwrap() error { return h.error }

// Hint returns err with what to do about it, for Print. It reads as err does.
func Hint(err error, hint string) error { return hinted{err, hint} }

// HintOf returns the outermost hint that err carries, or "".
func HintOf(err error) string {
	var h hinted
	errors.As(err, &h)
	return h.hint
}

// HintUsage gives errors of the command line, of c and of all commands below it that
// say what arguments they take, a hint where they have none.
func HintUsage(c *cobra.Command) {
	hint := func(c *cobra.Command, err error) error {
		if err == nil || HintOf(err) != "" {
			return err
		}
		return Hint(err, c.CommandPath()+" --help lists what there is")
	}
	c.SetFlagErrorFunc(hint)
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error { return hint(c, check(c, args)) }
	}
	for _, below := range c.Commands() {
		HintUsage(below)
	}
}

// Print writes err as a person is to see it: a line "error:" and, where there is
// one, a line "hint:".
func Print(w io.Writer, err error) {
	fmt.Fprintln(w, "error:", err)
	if hint := HintOf(err); hint != "" {
		fmt.Fprintln(w, "hint:", hint)
	}
}
