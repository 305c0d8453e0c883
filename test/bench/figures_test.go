// Package bench measures what docs/benchmarks.md states, on real processes and
// real Podman, and holds it against the budgets. `make bench` runs it on an
// otherwise idle machine; each line that it prints is a row of that page.
package bench

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// figure is one row: what was measured, and what it may be at most.
func figure(t *testing.T, what string, value, budget float64, unit string) {
	t.Helper()
	allowed := "-"
	if budget > 0 {
		allowed = fmt.Sprintf("%.4g %s", budget, unit)
	}
	fmt.Printf("| %s | %.4g %s | %s |\n", what, value, unit, allowed)
	if budget > 0 && value > budget {
		t.Errorf("%s: %.4g %s, the budget is %s", what, value, unit, allowed)
	}
}

// note is a row of several values, without a budget.
func note(what string, values string) { fmt.Printf("| %s | %s | - |\n", what, values) }

func median(d []time.Duration) time.Duration {
	sorted := slices.Clone(d)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// spread words the least, the middle and the most of several times.
func spread(d []time.Duration) string {
	return fmt.Sprintf("%.0f ms (%.0f to %.0f, %d runs)", milliseconds(median(d)), milliseconds(slices.Min(d)), milliseconds(slices.Max(d)), len(d))
}
