package pod_test

import (
	"testing"

	"bramble.dev/bramble/nodeagent/pod"
)

func TestExpand(t *testing.T) {
	lookup := func(name string) (string, bool) {
		v, ok := map[string]string{"A": "1", "B": "$(A)", "": "empty"}[name]
		return v, ok
	}
	for in, want := range map[string]string{
		"": "", "plain": "plain", "$(A)": "1", "x$(A)y": "x1y", "$(B)": "$(A)", "$(C)": "$(C)", "$$(A)": "$(A)",
		"$$$(A)": "$1", "$": "$", "$A": "$A", "$(A": "$(A", "a$": "a$", "$()": "empty", "$(A)$(A)": "11",
	} {
		if got := pod.Expand(in, lookup); got != want {
			t.Errorf("Expand(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzExpand(f *testing.F) {
	f.Add("$(A) $$(B) $(")
	f.Fuzz(func(t *testing.T, s string) {
		pod.Expand(s, func(name string) (string, bool) { return name, len(name)%2 == 0 })
	})
}
