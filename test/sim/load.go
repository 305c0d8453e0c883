package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/scheduler"
)

// simPod is a pod that comes, and runs for a while once it has a node.
type simPod struct {
	pod      *scheduler.Pod
	arrives  time.Duration
	lasts    time.Duration
	use      float64 // cores that it really uses
	memoryMB int64

	ends  time.Duration
	node  *node
	tries int
	after time.Duration // not to be tried before
	ready bool          // something happened that could help
}

// What pods are like: all of it guesses.
var (
	requests   = []float64{0.25, 0.25, 0.25, 0.5, 0.5, 0.5, 1, 1, 2, 2} // cores, each as likely
	memories   = []int64{32, 64, 128, 256}                              // MiB
	leastUse   = 0.4                                                    // of the request
	mostUse    = 1.4
	shortPod   = 5 * time.Minute  // the mean of four in five
	longPod    = 30 * time.Minute // and that of the fifth
	oneIn      = 5
	shortest   = 20 * time.Second
	meanCores  = 0.825 * 0.9 // what a pod uses
	meanSecond = 620.        // how long it runs, with shortest
)

// arrivals are the pods of a run, which come as a Poisson process and use load of so many
// cores on average.
func arrivals(rng *rand.Rand, load, cores float64, until time.Duration) []*simPod {
	perSecond := load * cores / (meanCores * meanSecond)
	var pods []*simPod
	for at := 0.; ; {
		at += rng.ExpFloat64() / perSecond
		arrives := time.Duration(math.Ceil(at)) * time.Second
		if arrives >= until {
			return pods
		}
		mean := shortPod
		if rng.IntN(oneIn) == 0 {
			mean = longPod
		}
		request := requests[rng.IntN(len(requests))]
		p := &simPod{
			arrives: arrives, ready: true,
			lasts:    shortest + time.Duration(rng.ExpFloat64()*float64(mean)),
			use:      request * (leastUse + (mostUse-leastUse)*rng.Float64()),
			memoryMB: memories[rng.IntN(len(memories))],
		}
		p.pod = scheduler.NewPod(object(len(pods), request, p.memoryMB))
		pods = append(pods, p)
	}
}

func object(i int, cores float64, memoryMB int64) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("p%d", i)},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{
				corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(cores*1000), resource.DecimalSI),
				corev1.ResourceMemory: *resource.NewQuantity(memoryMB<<20, resource.BinarySI),
			},
		}}}},
	}
}
