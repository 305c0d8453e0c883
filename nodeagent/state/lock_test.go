package state_test

import (
	"errors"
	"testing"

	"bramble.dev/bramble/nodeagent/state"
)

func TestOneAgentADirectory(t *testing.T) {
	dir := t.TempDir()
	unlock, err := state.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := state.Lock(dir); !errors.Is(err, state.ErrInUse) {
		t.Errorf("a second agent: %v, want ErrInUse", err)
	}
	unlock()
	unlock, err = state.Lock(dir)
	if err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	unlock()
}
