package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A program that ends at once is not waited for, and its last words are the error.
func TestAProgramThatEndsIsNotWaitedFor(t *testing.T) {
	c, err := begin(exec.Command("sh", "-c", "echo one; echo error: the port is taken >&2; exit 1"), filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	err = c.await(t.Context(), time.Minute, "it was not ready", func(context.Context) bool { return false })
	if err == nil || !strings.Contains(err.Error(), "sh ended: error: the port is taken") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it was waited for %v", took)
	}
}

func TestWhatIsNotDoneInTimeIsSaid(t *testing.T) {
	err := (*child)(nil).await(t.Context(), time.Millisecond, "it was not ready", func(context.Context) bool { return false })
	if err == nil || err.Error() != "it was not ready in 1ms" {
		t.Errorf("got %v", err)
	}
}
