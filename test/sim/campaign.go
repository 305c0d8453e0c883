package main

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// seeds is how many runs each figure is the mean of.
const seeds = 5

// trial is a scenario under a policy, and what came of it by seed.
type trial struct {
	scenario scenario
	policy   policy
	runs     [seeds]result
}

// all are trials of every scenario under every policy, scenario by scenario.
func trials(scenarios []scenario, policies []policy) (all []*trial) {
	for _, s := range scenarios {
		for _, p := range policies {
			all = append(all, &trial{scenario: s, policy: p})
		}
	}
	return all
}

// perform runs trials on all cores. Runs share nothing: the results are the same in
// whatever order they are run.
func perform(all []*trial) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() { // ends when all runs are taken
			for {
				i := int(next.Add(1) - 1)
				if i >= len(all)*seeds {
					return
				}
				t, seed := all[i/seeds], i%seeds
				t.runs[seed] = simulate(t.scenario, t.policy, uint64(seed+1))
			}
		})
	}
	workers.Wait()
}

// metric is a figure of a result.
type metric func(r result) float64

// mean is over seeds.
func (t *trial) mean(of metric) float64 {
	sum := 0.
	for _, r := range t.runs {
		sum += of(r)
	}
	return sum / seeds
}

// span is the least and the most over seeds.
func (t *trial) span(of metric) (least, most float64) {
	least, most = of(t.runs[0]), of(t.runs[0])
	for _, r := range t.runs {
		least, most = min(least, of(r)), max(most, of(r))
	}
	return least, most
}

func throttled(r result) float64 { return r.throttled }
func lostWork(r result) float64  { return r.lost }
func wait(r result) float64      { return r.wait }
func waitP95(r result) float64   { return r.waitP95 }
func peak(r result) float64      { return r.peak }
func flips(r result) float64     { return r.flips }
