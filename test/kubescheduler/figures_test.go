package kubescheduler

import (
	"fmt"
	"slices"
	"syscall"
	"time"
)

// figure is a row of docs/benchmarks.md without a budget.
func figure(what, measured string) { fmt.Printf("| %s | %s | - |\n", what, measured) }

// rate is one round of one scheduler.
type rate struct {
	podsPerSecond float64
	cpu           time.Duration // of a processor, for each pod
}

// rates words the middle, the least and the most of several rounds.
func rates(all []rate) string {
	speed := speeds(all)
	var cpu []time.Duration
	for _, r := range all {
		cpu = append(cpu, r.cpu)
	}
	return fmt.Sprintf("%.0f pods/s (%.0f to %.0f, %d rounds), %.2f ms of a processor for each", middle(speed), slices.Min(speed), slices.Max(speed), len(all),
		float64(middle(cpu).Microseconds())/1000)
}

func speeds(all []rate) []float64 {
	var speed []float64
	for _, r := range all {
		speed = append(speed, r.podsPerSecond)
	}
	return speed
}

func middle[T float64 | time.Duration](all []T) T {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// budget is how many times as fast Bramble is to be, with that many nodes.
const (
	budget      = 5
	budgetNodes = 1000
)

// compare prints the rows of one measurement. It does not judge: docs/benchmarks.md
// says where the budget is missed.
func compare(what string, nodes int, bramble, kubernetes []rate) {
	figure(what+": Bramble", rates(bramble))
	figure(what+": Kubernetes", rates(kubernetes))
	wanted := "-"
	if nodes == budgetNodes {
		wanted = fmt.Sprintf("at least %d ×", budget)
	}
	fmt.Printf("| %s: Bramble / Kubernetes (medians) | %.3g × | %s |\n", what, middle(speeds(bramble))/middle(speeds(kubernetes)), wanted)
}

// processor is what this process has used.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
