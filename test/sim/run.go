package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"bramble.dev/bramble/hw"
	"bramble.dev/bramble/server/scheduler"
)

// How long a run is: what happens while the fleet warms up does not count.
const (
	warmUp  = 30 * time.Minute
	counted = 2 * time.Hour
	second  = time.Second
)

// scenario is what a fleet has to bear.
type scenario struct {
	fleet   fleet
	ambient float64 // °C
	load    float64 // what pods use on average, of all cores
}

// policy is a way of choosing nodes.
type policy struct {
	name    string
	profile func(pick func(int) int) scheduler.Profile
}

// result is what came of a run.
type result struct {
	throttled float64 // node-time with the clock held down, %
	lost      float64 // work that was not done of what pods wanted, %
	wait      float64 // mean time until a pod has a node, s
	waitP95   float64
	peak      float64 // °C
	flips     float64 // of the condition Hot, an hour, of all nodes
}

// run is one run while it lasts.
type run struct {
	now      time.Duration
	nodes    []*node
	byName   map[string]*node
	snapshot *scheduler.Snapshot
	profile  scheduler.Profile
	running  []*simPod
	waiting  []*simPod

	throttled, wanted, done, peak float64
	flips                         int
	waits                         []float64
}

// simulate runs a scenario once. The same seed brings the same pods, whatever the policy.
func simulate(sc scenario, p policy, seed uint64) result {
	r := &run{byName: map[string]*node{}, snapshot: scheduler.NewSnapshot()}
	r.profile = p.profile(rand.New(rand.NewPCG(seed, 2)).IntN)
	cores := 0.
	for i, b := range sc.fleet.boards {
		n := newNode(fmt.Sprintf("n%02d-%s", i, b.kind.name), b.kind, sc.ambient+b.warmer, b.fault, seed<<8+uint64(i))
		r.nodes, r.byName[n.name] = append(r.nodes, n), n
		r.snapshot.PutNode(n.object())
		cores += b.kind.cores
	}
	coming := arrivals(rand.New(rand.NewPCG(seed, 3)), sc.load, cores, warmUp+counted)
	for ; r.now < warmUp+counted; r.now += second {
		r.second(&coming)
	}
	for _, p := range r.waiting { // they still wait
		r.waited(p)
	}
	return r.result()
}

// second lets one pass: pods end and come, agents report, the scheduler places, and
// boards work and get warm.
func (r *run) second(coming *[]*simPod) {
	r.snapshot.At(instant(r.now))
	happened := r.end()
	for i, n := range r.nodes {
		if (int(r.now/second)+i)%int(hw.Fast/second) != 0 {
			continue
		}
		h, turned := n.publish(r.now)
		if h != nil && r.snapshot.PutHardware(h, instant(r.now)) {
			happened = true
		}
		if turned && r.now >= warmUp {
			r.flips++
		}
	}
	for len(*coming) > 0 && (*coming)[0].arrives <= r.now {
		r.waiting = append(r.waiting, (*coming)[0])
		*coming = (*coming)[1:]
	}
	r.place(happened)
	for _, n := range r.nodes {
		wanted, done := n.run()
		if r.now < warmUp {
			continue
		}
		r.wanted, r.done = r.wanted+wanted, r.done+done
		r.peak = max(r.peak, n.celsius())
		if n.clock > 0 {
			r.throttled++
		}
	}
}

// end ends the pods that have run for as long as they do.
func (r *run) end() (some bool) {
	r.running = slices.DeleteFunc(r.running, func(p *simPod) bool {
		if p.ends > r.now {
			return false
		}
		p.node.pods = slices.DeleteFunc(p.node.pods, func(q *simPod) bool { return q == p })
		r.snapshot.DeletePod(types.NamespacedName{Namespace: p.pod.Namespace, Name: p.pod.Name})
		some = true
		return true
	})
	return some
}

// Of a pod that fitted nowhere, as the scheduler's queue has it.
const (
	firstBackoff = second
	maxBackoff   = 10 * second
)

// place decides for the pods that wait, in the order in which they came: for new ones,
// and for those that fitted nowhere when something happened since.
func (r *run) place(happened bool) {
	r.waiting = slices.DeleteFunc(r.waiting, func(p *simPod) bool {
		p.ready = p.ready || happened
		if !p.ready || p.after > r.now {
			return false
		}
		d := r.profile.Decide(r.snapshot, p.pod)
		if d.Node == "" {
			p.ready, p.after = false, r.now+min(firstBackoff<<min(p.tries, 4), maxBackoff)
			p.tries++
			return false
		}
		r.snapshot.Assume(p.pod, d.Node)
		p.node, p.ends = r.byName[d.Node], r.now+p.lasts
		p.node.pods = append(p.node.pods, p)
		r.running = append(r.running, p)
		r.waited(p)
		return true
	})
}

func (r *run) waited(p *simPod) {
	if p.arrives >= warmUp {
		r.waits = append(r.waits, (r.now - p.arrives).Seconds())
	}
}

func (r *run) result() result {
	slices.Sort(r.waits)
	sum := 0.
	for _, w := range r.waits {
		sum += w
	}
	of := float64(max(len(r.waits), 1))
	out := result{
		throttled: 100 * r.throttled / (float64(len(r.nodes)) * counted.Seconds()),
		lost:      100 * (1 - r.done/max(r.wanted, 1)),
		wait:      sum / of, peak: r.peak, flips: float64(r.flips) / counted.Hours(),
	}
	if len(r.waits) > 0 {
		out.waitP95 = r.waits[int(math.Ceil(0.95*of))-1]
	}
	return out
}
