package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/hw"
	"bramble.dev/bramble/nodeagent/report"
	"bramble.dev/bramble/server/api"
)

// fault is what is wrong with a board's sensor of temperature.
type fault int

const (
	sound       fault = iota
	lost              // no answer any more
	stuck             // the same for ever
	reads10Low        // by 10 K too low
	reads10High       // by 10 K too high
)

const faultFrom = 15 * time.Minute // of the run: before, sensors are sound

// Sensors of a Raspberry Pi tell steps of 0.487 K; half a K of noise is a guess.
const (
	sensorStep  = 487 // m°C
	sensorNoise = 0.5 // K
)

// node is a simulated board, and the agent on it.
type node struct {
	name    string
	kind    *kind
	ambient float64
	fault   fault
	noise   *rand.Rand

	fastK, slowK float64 // above ambient, of the two poles
	decay        [2]float64
	clock        int // step
	pods         []*simPod

	last       float64 // what the sensor said before it stuck, °C
	judge      hw.Judge
	sent       *api.NodeHardwareStatus
	sentAt     time.Duration
	hot        bool
	conditions []hw.Condition
}

func newNode(name string, k *kind, ambient float64, f fault, seed uint64) *node {
	n := &node{name: name, kind: k, ambient: ambient, fault: f, noise: rand.New(rand.NewPCG(seed, 1))}
	n.decay = [2]float64{1 - math.Exp(-1/k.fast.seconds), 1 - math.Exp(-1/k.slow.seconds)}
	n.fastK, n.slowK = k.idle*k.fast.kelvin, k.idle*k.slow.kelvin // it has idled for long
	return n
}

func (n *node) celsius() float64 { return n.ambient + n.fastK + n.slowK }

// run lets a second pass, and returns the work that pods wanted done and that was, in
// core-seconds at full clock. A pod has as many threads as it uses cores, each on one of
// them; where the cores are too few all get the same part of what they want.
func (n *node) run() (wanted, done float64) {
	clock := n.kind.steps[n.clock]
	for _, p := range n.pods {
		wanted += p.use
		done += min(p.use, math.Ceil(p.use)*clock)
	}
	done = min(done, n.kind.cores*clock)
	watts := n.kind.watts(done, clock)
	n.fastK += (watts*n.kind.fast.kelvin - n.fastK) * n.decay[0]
	n.slowK += (watts*n.kind.slow.kelvin - n.slowK) * n.decay[1]
	n.clock = n.kind.step(n.clock, n.celsius())
	return wanted, done
}

// sense is what the sensor of temperature says, in m°C.
func (n *node) sense(now time.Duration) hw.Reading[int64] {
	celsius := n.celsius() + sensorNoise*(2*n.noise.Float64()-1)
	if now >= faultFrom {
		switch n.fault {
		case lost:
			return hw.Reading[int64]{Err: hw.ErrAbsent}
		case stuck:
			celsius = n.last
		case reads10Low:
			celsius -= 10
		case reads10High:
			celsius += 10
		}
	}
	n.last = celsius
	return read(int64(math.Round(celsius*1000/sensorStep))*sensorStep, now)
}

func read[T any](v T, now time.Duration) hw.Reading[T] {
	return hw.Reading[T]{Value: v, At: now, Source: "simulated"}
}

// look is what the agent reads.
func (n *node) look(now time.Duration) hw.Snapshot {
	s := hw.Snapshot{At: now}
	s.Identity = hw.Identity{BootID: "boot", Model: n.kind.name, Processor: hw.Processor{Arch: "arm64"}}
	s.Thermal.SoC = n.sense(now)
	if n.kind.revision == "" {
		s.Thermal.Passive = int64(n.kind.limit * 1000)
	} else {
		s.Identity.Revision = &hw.Revision{Type: n.kind.revision}
		var bits hw.ThrottleBits
		switch {
		case n.clock > 0 && n.celsius() < n.kind.limit-releases:
			bits = 8 // the soft limit
		case n.clock > 0:
			bits = 4 | 2
		}
		s.Throttle.Bits = read(bits, now)
	}
	free := n.kind.memoryMB * 9 / 10
	for _, p := range n.pods {
		free -= p.memoryMB
	}
	s.Memory.Total, s.Memory.Available = read(n.kind.memoryMB<<20, now), read(max(free, 0)<<20, now)
	s.Clock.Synchronized = read(true, now)
	if n.kind.linkMbit > 0 {
		s.Links = []hw.Link{{Name: "eth0", State: "up", Speed: read(n.kind.linkMbit, now)}}
	}
	return s
}

// reportEvery is the agent's default.
const reportEvery = 30 * time.Second

// publish reads and judges as the agent does, and returns what it tells the server; nil
// if there is nothing to tell. turned says that it became hot, or cool again.
func (n *node) publish(now time.Duration) (h *api.NodeHardware, turned bool) {
	s := n.look(now)
	v := n.judge.Take(s)
	hot := v.Is(hw.Hot)
	turned, n.hot = hot != n.hot, hot
	same := slices.Equal(v.Conditions, n.conditions)
	n.conditions = v.Conditions
	if n.sent != nil && same && now-n.sentAt < reportEvery {
		return nil, turned // nothing can be due
	}
	status := report.HardwareStatus(s, v, "/")
	var before []metav1.Condition
	if n.sent != nil {
		before = n.sent.Conditions
	}
	status.Conditions = report.Conditions(v, before, instant(now))
	if n.sent != nil && !report.Due(n.sent, &status, now-n.sentAt, reportEvery) {
		return nil, turned
	}
	n.sent, n.sentAt = &status, now
	return &api.NodeHardware{ObjectMeta: metav1.ObjectMeta{Name: n.name}, Status: status}, turned
}

// instant is a time of the run on the scheduler's clock.
func instant(now time.Duration) time.Time { return time.Unix(0, 0).Add(now) }

// object is the node as the scheduler knows it.
func (n *node) object() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.name},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(n.kind.cores*1000), resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(n.kind.memoryMB*9/10<<20, resource.BinarySI),
			corev1.ResourcePods:   *resource.NewQuantity(110, resource.DecimalSI),
		}},
	}
}
