package bench

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"bramble.dev/bramble/test/cluster"
)

// TestCommandLine compares `get pods` of edgectl and of stock kubectl of the
// same version, in turn, start to finish.
func TestCommandLine(t *testing.T) {
	s := cluster.StartServer(t)
	bin := cluster.Programs(t)
	once := func(program string) time.Duration {
		began := time.Now()
		if _, err := s.Kubectl(filepath.Join(bin, program), "", "get", "pods"); err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	once("edgectl")
	once("kubectl")
	var ours, theirs []time.Duration
	for range 15 {
		ours = append(ours, once("edgectl"))
		theirs = append(theirs, once("kubectl"))
	}
	note("edgectl get pods", spread(ours))
	note("kubectl get pods, same version", spread(theirs))
	figure(t, "edgectl / kubectl (medians)", float64(median(ours))/float64(median(theirs)), 1.2, "×")
	fmt.Println()
}
