package network_test

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// reaches tells whether a pod has traffic to the outside.
func (b *bed) reaches(path string) bool {
	out, _ := b.inPod(path, "timeout", "2", "busybox", "sh", "-c", "echo x | busybox nc "+outsideAddr+" 7000")
	return strings.Contains(out, "x")
}

// TestPodsReachTheOutsideAfterFaults: the network process is killed while the way
// out is dead, and the host's link is gone for a while, also while the network
// process starts. Afterwards the pods that were there reach the outside, and
// each other all the time.
func TestPodsReachTheOutsideAfterFaults(t *testing.T) {
	for _, wayOut := range []string{"pasta", "slirp4netns"} {
		t.Run(wayOut, func(t *testing.T) {
			b := newBed(t)
			b.start()
			b.putNode(wayOut)
			one, two := b.putPod("one", "10.100.5.7"), b.putPod("two", "10.100.5.8")
			b.echoIn(two.Path, "80")
			b.listenIn(b.outside, outsideAddr+":7000", echo)
			toPod := b.connect(one.Path, "10.100.5.8", "80")
			again := func(when string) {
				t.Helper()
				if err := toPod.echoes(when); err != nil {
					t.Errorf("%s: pods' own traffic: %v", when, err)
				}
				b.eventually("traffic to the outside "+when, 30*time.Second, func() bool { return b.reaches(one.Path) })
			}
			again("at first")
			b.crash()
			pids, err := b.Running(wayOut)
			if err != nil || len(pids) == 0 {
				t.Fatalf("%v, %v", pids, err)
			}
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGKILL) // gone already is as good
			}
			b.start()
			b.putNode(wayOut)
			b.putPod("one", "10.100.5.7")
			again("after both were killed")
			b.linkDown()
			if b.reaches(one.Path) {
				t.Error("the link is down, and there is traffic")
			}
			b.linkUp()
			again("after the link was gone")
			b.linkDown()
			b.crash()
			b.start()
			b.putNode(wayOut)
			b.linkUp()
			again("after a start without a link")
		})
	}
}
