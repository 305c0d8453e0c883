package report

import (
	"math/rand/v2"
	"time"
)

const (
	minDelay = 500 * time.Millisecond
	maxDelay = 30 * time.Second
)

// delay is the wait after the n-th failure in a row, from 1: doubling, each a
// random half to all of its length.
func delay(n int) time.Duration {
	d := maxDelay
	if n < 8 {
		d = min(maxDelay, minDelay<<n)
	}
	return d/2 + rand.N(d/2)
}
