package cluster

import (
	"testing"
	"time"
)

// Eventually waits until check has nothing to say, and fails the test with what
// it says last.
func Eventually(t testing.TB, limit time.Duration, check func() string) {
	t.Helper()
	deadline := time.After(limit)
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		words := check()
		if words == "" {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("after %v still: %s", limit, words)
		case <-ticker.C:
		}
	}
}
