package e2e

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// eventually waits until check has nothing to say, and fails with what it says last.
func eventually(t *testing.T, limit time.Duration, check func() string) {
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

// number is a count that the long tests raise by the environment.
func number(t *testing.T, variable string, ordinary int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return ordinary
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}
