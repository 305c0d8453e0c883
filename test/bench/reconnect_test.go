package bench

import (
	"fmt"
	"testing"
	"time"

	"bramble.dev/bramble/test/cluster"
	"bramble.dev/bramble/test/hollow"
)

// TestReconnect kills the server of 300 nodes and starts it again, at once and
// after a minute in which all nodes have come to their longest pauses: how long it
// takes until each has renewed its lease and is Ready, and how much the server has
// resident at its most until then.
func TestReconnect(t *testing.T) {
	const nodes, limit = 300, 30.0
	s := cluster.StartServer(t)
	fleet := hollow.Start(t, s, nodes)
	rest(t, 10*time.Second)
	figure(t, fmt.Sprintf("%d nodes: server, resident (%.1f MiB of it anonymous)", nodes, read(t, s.PID()).anonMiB), read(t, s.PID()).rssMiB, 64, "MiB")
	for _, outage := range []time.Duration{0, time.Minute} {
		s.Kill()
		rest(t, outage)
		heard := fleet.Renewals()
		s.Start()
		began := time.Now()
		cluster.Eventually(t, 2*time.Minute, func() string {
			if count := fleet.Renewed(heard); count != nodes {
				return fmt.Sprintf("%d of %d nodes were heard", count, nodes)
			}
			if ready := fleet.Ready(t); ready != nodes {
				return fmt.Sprintf("%d of %d nodes are Ready", ready, nodes)
			}
			return ""
		})
		what := fmt.Sprintf("%d nodes back after %v without the server: ", nodes, outage)
		figure(t, what+"all heard and Ready", time.Since(began).Seconds(), limit, "s")
		rest(t, 15*time.Second) // their statuses follow
		figure(t, what+"server, resident at its most", read(t, s.PID()).peakMiB, 64, "MiB")
	}
}
