package network_test

import (
	"slices"
	"syscall"
	"testing"
	"time"
)

// TestWayOutThatWorkedIsChosenAgain: a program that was killed, as by the kernel
// short of memory, is no reason to go on with one half as fast for ever.
func TestWayOutThatWorkedIsChosenAgain(t *testing.T) {
	b := newBed(t)
	b.start()
	if status := b.putNode(""); status.WayOut != "pasta" {
		t.Fatalf("the way out is %+v", status)
	}
	running := func(program string) []int {
		pids, err := b.Running(program)
		if err != nil {
			t.Fatal(err)
		}
		return pids
	}
	for range 3 {
		before := running("pasta")
		for _, pid := range before {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		b.eventually("a new way out", 30*time.Second, func() bool {
			now := slices.Concat(running("pasta"), running("slirp4netns"))
			fresh := slices.ContainsFunc(now, func(pid int) bool { return !slices.Contains(before, pid) })
			return fresh && b.putNode("").WayOut != "" // those that die are there for a moment
		})
		if status := b.putNode(""); status.WayOut != "pasta" {
			t.Fatalf("after pasta was killed the way out is %+v", status)
		}
	}
}
