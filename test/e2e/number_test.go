package e2e

import (
	"os"
	"strconv"
	"testing"
)

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
