package objects_test

import (
	"slices"
	"strings"
	"testing"

	"bramble.dev/bramble/server/objects"
)

func FuzzWords(f *testing.F) {
	f.Add("a", "", strings.Repeat("long ", 100))
	f.Add("\x00", "\xff", "é")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		list := []string{a, b, c, a}
		if got := objects.Words(list); !slices.Equal(got, list) {
			t.Errorf("%q became %q", list, got)
		}
	})
}
