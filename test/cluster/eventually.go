package cluster

import (
	"testing"
	"time"
)

// Eventually waits until check has nothing to say, and fails the test with what
// it says last. Between two checks it waits twice as long as one took, 50 ms at
// least and 1 s at most: many tests that ask at once leave the machine to what they
// ask about.
func Eventually(t testing.TB, limit time.Duration, check func() string) {
	t.Helper()
	deadline := time.After(limit)
	for {
		began := time.Now()
		words := check()
		if words == "" {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("after %v still: %s", limit, words)
		case <-time.After(min(max(50*time.Millisecond, 2*time.Since(began)), time.Second)):
		}
	}
}
