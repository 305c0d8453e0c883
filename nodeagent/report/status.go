package report

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceLimitsUnenforced is True on a node where limits that a pod sets are
// not held, because the kernel or systemd gives the node's user no cgroup v2
// controllers.
const ResourceLimitsUnenforced corev1.NodeConditionType = "ResourceLimitsUnenforced"

// What a node keeps for itself, and where it counts as under pressure: the
// kubelet's default eviction thresholds.
const (
	reservedMemory = 100 << 20
	lowMemory      = 100 << 20
	maxPods        = 110
)

// Health is what the agent knows of its own parts; an empty reason is good.
type Health struct {
	EngineError  string // of the container engine
	NetworkError string // of the network process
	Address      string // the node's own address, as the server's network sees it
	Runtime      string // "podman://4.3.1"
	Version      string // of Bramble
	KubeVersion  string // "v1.37.2-bramble.0.1.0"
}

// NodeStatus composes the node's status. Transition times are kept from before
// where nothing changed, so that equal statuses are equal in bytes. It is pure.
func NodeStatus(name string, f Facts, h Health, before []corev1.NodeCondition, now time.Time) corev1.NodeStatus {
	info := f.Info
	info.KubeletVersion, info.ContainerRuntimeVersion = h.KubeVersion, h.Runtime
	st := corev1.NodeStatus{
		Capacity:    resources(f.CPUs, f.MemoryBytes, f.StorageBytes),
		Allocatable: resources(f.CPUs, max(0, f.MemoryBytes-reservedMemory), f.StorageBytes/10*9),
		NodeInfo:    info,
		Addresses:   []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}},
		Conditions:  nodeConditions(f, h),
	}
	if h.Address != "" {
		st.Addresses = append([]corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: h.Address}}, st.Addresses...)
	}
	stamp := metav1.NewTime(now.Round(0).Truncate(time.Second))
	for i := range st.Conditions {
		c := &st.Conditions[i]
		c.LastTransitionTime, c.LastHeartbeatTime = stamp, stamp
		for _, old := range before {
			if old.Type == c.Type && old.Status == c.Status {
				c.LastTransitionTime, c.LastHeartbeatTime = old.LastTransitionTime, old.LastHeartbeatTime
			}
		}
	}
	return st
}

func resources(cpus int, memory, storage int64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(int64(cpus), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(memory, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(storage, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(maxPods, resource.DecimalSI),
	}
}

func nodeConditions(f Facts, h Health) []corev1.NodeCondition {
	pressure := func(t corev1.NodeConditionType, is bool, bad, badText, good, goodText string) corev1.NodeCondition {
		if is {
			return corev1.NodeCondition{Type: t, Status: corev1.ConditionTrue, Reason: bad, Message: badText}
		}
		return corev1.NodeCondition{Type: t, Status: corev1.ConditionFalse, Reason: good, Message: goodText}
	}
	all := []corev1.NodeCondition{
		pressure(corev1.NodeMemoryPressure, f.MemoryBytes > 0 && f.MemoryAvailableBytes < lowMemory,
			"KubeletHasInsufficientMemory", "less than 100 MiB of memory are available",
			"KubeletHasSufficientMemory", "the node has sufficient memory available"),
		pressure(corev1.NodeDiskPressure, f.StorageBytes > 0 && f.StorageAvailableBytes < f.StorageBytes/10,
			"KubeletHasDiskPressure", "less than a tenth of the storage is available",
			"KubeletHasNoDiskPressure", "the node has no disk pressure"),
		pressure(corev1.NodePIDPressure, f.ProcessesMax > 0 && f.Processes > f.ProcessesMax/10*9,
			"KubeletHasInsufficientPID", "more than nine tenths of the process ids are taken",
			"KubeletHasSufficientPID", "the node has sufficient process ids available"),
		pressure(ResourceLimitsUnenforced, len(f.Unenforced) > 0,
			"NoCgroupDelegation", "limits are not held for: "+strings.Join(f.Unenforced, ", ")+
				"; the node's user has no such cgroup v2 controller (see systemd's Delegate=, and cgroup_enable=memory on a Raspberry Pi)",
			"CgroupsDelegated", "limits are held"),
	}
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "the agent is ready to run pods"}
	switch {
	case h.EngineError != "":
		ready.Status, ready.Reason, ready.Message = corev1.ConditionFalse, "ContainerRuntimeNotReady", h.EngineError
	case h.NetworkError != "":
		ready.Status, ready.Reason, ready.Message = corev1.ConditionFalse, "NetworkNotReady", h.NetworkError
	}
	return append(all, ready)
}
