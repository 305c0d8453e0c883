package doctor

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// Latency is how long small writes took until they were on the storage.
type Latency struct {
	Writes        int
	Median, Worst time.Duration
	Slow          int // how many took longer than slowWrite
	Err           error
}

// What is written to measure: as a node's record is, in blocks with a flush each.
const (
	latencyWrites = 20
	latencyBlock  = 4096
	latencyLimit  = 10 * time.Second // it is given up then
	slowWrite     = 200 * time.Millisecond
)

// measure writes to a file in dir that has no name any more.
func measure(dir string) (l Latency) {
	f, err := os.CreateTemp(dir, ".bramble-doctor-*")
	if err != nil {
		return Latency{Err: err}
	}
	defer func() { l.Err = errors.Join(l.Err, f.Close()) }()
	if err := os.Remove(f.Name()); err != nil {
		return Latency{Err: err}
	}
	block := make([]byte, latencyBlock)
	var took []time.Duration
	for began := time.Now(); len(took) < latencyWrites && time.Since(began) < latencyLimit; {
		block[0]++
		start := time.Now()
		if _, err := f.Write(block); err != nil {
			return Latency{Err: err}
		}
		if err := f.Sync(); err != nil {
			return Latency{Err: err}
		}
		took = append(took, time.Since(start))
		if took[len(took)-1] > slowWrite {
			l.Slow++
		}
	}
	slices.Sort(took)
	l.Writes, l.Median, l.Worst = len(took), took[len(took)/2], took[len(took)-1]
	return l
}

func checkLatency(f Facts) []Finding {
	const check = "StorageSlow"
	if f.Latency == nil {
		return nil
	}
	l := *f.Latency
	if l.Err != nil {
		return []Finding{unknown(check, "how fast the storage writes: %v", l.Err)}
	}
	said := fmt.Sprintf("%d writes of 4 KiB at %s took %s in the middle and %s at worst", l.Writes, f.State.Dir, milliseconds(l.Median), milliseconds(l.Worst))
	if l.Slow*10 >= l.Writes {
		return []Finding{warning(check, "slow storage: %s; a card of class A2 or an SSD serves better", said)}
	}
	return []Finding{fine(check, "%s", said)}
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}
