package scheduler

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// What a container without requests counts as in scores (Kubernetes' values):
// it will use something. Filters count it as nothing.
const (
	unsaidMilliCPU = 100
	unsaidMemory   = 200 << 20
)

// Resources are amounts of what nodes have and pods ask for: CPU in thousandths
// of a core, extended resources in whole ones, all else in bytes.
type Resources struct {
	MilliCPU, MemoryBytes, StorageBytes int64
	Pods                                int64
	Extended                            map[corev1.ResourceName]int64 // also huge pages; nil for none
}

func resourcesOf(list corev1.ResourceList) Resources {
	var r Resources
	for name, q := range list {
		switch name {
		case corev1.ResourceCPU:
			r.MilliCPU = q.MilliValue()
		case corev1.ResourceMemory:
			r.MemoryBytes = q.Value()
		case corev1.ResourceEphemeralStorage:
			r.StorageBytes = q.Value()
		case corev1.ResourcePods:
			r.Pods = q.Value()
		default:
			if r.Extended == nil {
				r.Extended = make(map[corev1.ResourceName]int64)
			}
			r.Extended[name] = q.Value()
		}
	}
	return r
}

// add adds o to r, or takes it away with sign -1.
func (r *Resources) add(o *Resources, sign int64) {
	r.MilliCPU += sign * o.MilliCPU
	r.MemoryBytes += sign * o.MemoryBytes
	r.StorageBytes += sign * o.StorageBytes
	r.Pods += sign * o.Pods
	for name, n := range o.Extended {
		if r.Extended == nil {
			r.Extended = make(map[corev1.ResourceName]int64)
		}
		r.Extended[name] += sign * n
	}
}

func (r Resources) clone() Resources {
	r.Extended = maps.Clone(r.Extended)
	return r
}

// requestsOf is what p asks for; the second result counts CPU and memory that
// it did not ask for as it will probably use them.
func requestsOf(p *corev1.Pod) (asked, likely Resources) {
	asked = resourcesOf(resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{}))
	asked.Pods = 1
	likely = resourcesOf(resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{
		NonMissingContainerRequests: corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewMilliQuantity(unsaidMilliCPU, resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(unsaidMemory, resource.BinarySI),
		},
	}))
	return asked, likely
}
