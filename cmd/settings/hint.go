package settings

import (
	"errors"
	"fmt"
	"io"
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

// Print writes err as a person is to see it: a line "error:" and, where there is
// one, a line "hint:".
func Print(w io.Writer, err error) {
	fmt.Fprintln(w, "error:", err)
	if hint := HintOf(err); hint != "" {
		fmt.Fprintln(w, "hint:", hint)
	}
}
