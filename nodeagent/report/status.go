package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/hw"
	"bramble.dev/bramble/server/api"
)

// ResourceLimitsUnenforced is True on a node where limits that a pod sets are
// not held, because the kernel or systemd gives the node's user no cgroup v2
// controllers.
const ResourceLimitsUnenforced corev1.NodeConditionType = "ResourceLimitsUnenforced"

// UnknownDatabase is True on a node that deletes nothing by the server's word,
// because the server's database is not the one that the node knows.
const UnknownDatabase corev1.NodeConditionType = "UnknownDatabase"

// IdentityShared is True on a node as which another board reports too, one with a
// copy of this one's card.
const IdentityShared corev1.NodeConditionType = "IdentityShared"

// What a node keeps for itself, and where it counts as under pressure: the
// kubelet's default eviction thresholds. Pressure is over when there is clearly
// more again: at one threshold for both, each look could write another status.
const (
	reservedMemory = 100 << 20
	lowMemory      = 100 << 20
	enoughMemory   = 150 << 20
)

// DefaultMaxPods is how many pods a node takes, as the kubelet's default.
const DefaultMaxPods = 110

// Health is what the agent knows of its own parts; an empty reason is good.
type Health struct {
	EngineError  string // of the container engine
	NetworkError string // of the network process
	// UnknownDatabase is why nothing is deleted by the server's word.
	UnknownDatabase string
	// IdentityShared is what to do about another board that reports as this node.
	IdentityShared string
	Address        string // the node's own address, as the server's network sees it
	Runtime        string // "podman://4.3.1"
	Version        string // of Bramble
	KubeVersion    string // "v1.37.2-bramble.0.1.0"
	Images         []corev1.ContainerImage
	Board          []hw.Condition // what is wrong with it, as far as is known
	Findings       []Finding      // what else keeps it from being a good node; nil: not looked yet
	Devices        *Devices       // nil: not known yet
}

// Finding is something that keeps the board from being a good node, and what to change.
type Finding struct {
	Type    corev1.NodeConditionType
	Message string
}

// Devices are the amounts of devices that the node has and that pods may ask for.
type Devices struct {
	Capacity, Allocatable map[corev1.ResourceName]int64
}

// NodeStatus composes the node's status. Transition times are kept from before
// where nothing changed, so that equal statuses are equal in bytes. It is pure.
func NodeStatus(name string, f Facts, h Health, before []corev1.NodeCondition, now time.Time) corev1.NodeStatus {
	info := f.Info
	info.KubeletVersion, info.ContainerRuntimeVersion = h.KubeVersion, h.Runtime
	st := corev1.NodeStatus{
		Capacity:    resources(f, f.MemoryBytes, f.StorageBytes),
		Allocatable: resources(f, max(0, f.MemoryBytes-reservedMemory), f.StorageBytes/10*9),
		NodeInfo:    info,
		Addresses:   []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}},
		Conditions:  nodeConditions(f, h, before),
		Images:      h.Images,
	}
	if h.Devices != nil {
		addAmounts(st.Capacity, h.Devices.Capacity)
		addAmounts(st.Allocatable, h.Devices.Allocatable)
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

func resources(f Facts, memory, storage int64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(int64(f.CPUs), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(memory, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(storage, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(int64(cmp.Or(f.MaxPods, DefaultMaxPods)), resource.DecimalSI),
	}
}

func addAmounts(list corev1.ResourceList, amounts map[corev1.ResourceName]int64) {
	for name, n := range amounts {
		list[name] = *resource.NewQuantity(n, resource.DecimalSI)
	}
}

// deviceResources are the resources of a status that are devices of ours.
func deviceResources(st corev1.NodeStatus) map[corev1.ResourceName]bool {
	names := map[corev1.ResourceName]bool{}
	for _, list := range []corev1.ResourceList{st.Capacity, st.Allocatable} {
		for name := range list {
			if strings.HasPrefix(string(name), api.Group+"/") {
				names[name] = true
			}
		}
	}
	return names
}

// isTrue says whether a condition stands among those of before.
func isTrue(before []corev1.NodeCondition, t corev1.NodeConditionType) bool {
	return slices.ContainsFunc(before, func(c corev1.NodeCondition) bool { return c.Type == t && c.Status == corev1.ConditionTrue })
}

// underPressure says which conditions of pressure hold: one that held before
// ends by its second, more generous threshold.
func underPressure(f Facts, before []corev1.NodeCondition) (memory, disk, pids bool) {
	least, free, inodes, taken := int64(lowMemory), f.StorageBytes/10, f.Inodes/20, f.ProcessesMax/10*9
	if isTrue(before, corev1.NodeMemoryPressure) {
		least = enoughMemory
	}
	if isTrue(before, corev1.NodeDiskPressure) {
		free, inodes = f.StorageBytes/100*12, f.Inodes/100*6
	}
	if isTrue(before, corev1.NodePIDPressure) {
		taken = f.ProcessesMax / 100 * 85
	}
	return f.MemoryBytes > 0 && f.MemoryAvailableBytes < least,
		f.StorageBytes > 0 && f.StorageAvailableBytes < free || f.Inodes > 0 && f.InodesFree < inodes,
		f.ProcessesMax > 0 && f.Processes > taken
}

func nodeConditions(f Facts, h Health, before []corev1.NodeCondition) []corev1.NodeCondition {
	memory, disk, pids := underPressure(f, before)
	pressure := func(t corev1.NodeConditionType, is bool, bad, badText, good, goodText string) corev1.NodeCondition {
		if is {
			return corev1.NodeCondition{Type: t, Status: corev1.ConditionTrue, Reason: bad, Message: badText}
		}
		return corev1.NodeCondition{Type: t, Status: corev1.ConditionFalse, Reason: good, Message: goodText}
	}
	all := []corev1.NodeCondition{
		pressure(corev1.NodeMemoryPressure, memory,
			"KubeletHasInsufficientMemory", "less than 100 MiB of memory were available; it ends at 150 MiB",
			"KubeletHasSufficientMemory", "the node has sufficient memory available"),
		pressure(corev1.NodeDiskPressure, disk,
			"KubeletHasDiskPressure", "less than a tenth of the storage was available, or a twentieth of its inodes; it ends at 12 % and 6 %",
			"KubeletHasNoDiskPressure", "the node has no disk pressure"),
		pressure(corev1.NodePIDPressure, pids,
			"KubeletHasInsufficientPID", "more than nine tenths of the process ids were taken; it ends at 85 %",
			"KubeletHasSufficientPID", "the node has sufficient process ids available"),
		pressure(ResourceLimitsUnenforced, len(f.Unenforced) > 0,
			"NoCgroupDelegation", "limits are not held for: "+strings.Join(f.Unenforced, ", ")+
				"; the node's user has no such cgroup v2 controller (see systemd's Delegate=, and cgroup_enable=memory on a Raspberry Pi)",
			"CgroupsDelegated", "limits are held"),
		pressure(UnknownDatabase, h.UnknownDatabase != "",
			"EpochUnknown", h.UnknownDatabase,
			"EpochKnown", "the server's database is the one that this node joined, or takes its place"),
		pressure(IdentityShared, h.IdentityShared != "",
			"AnotherBoardReports", h.IdentityShared,
			"OneBoardReports", "no other board was seen to report as this node"),
	}
	for _, c := range h.Board {
		if words := conditionWords[c.Type]; c.Known {
			all = append(all, pressure(corev1.NodeConditionType(c.Type), c.On, words[0], words[1], "Fine", words[2]))
		}
	}
	all = append(all, found(h.Findings, all, before)...)
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "the agent is ready to run pods"}
	switch {
	case h.EngineError != "":
		ready.Status, ready.Reason, ready.Message = corev1.ConditionFalse, "ContainerRuntimeNotReady", h.EngineError
	case h.NetworkError != "":
		ready.Status, ready.Reason, ready.Message = corev1.ConditionFalse, "NetworkNotReady", h.NetworkError
	}
	return append(all, ready)
}

// Reasons of conditions that are findings: of one that stands, and of one that is over.
const (
	findingStands = "DoctorFinds"
	findingOver   = "DoctorFindsNothing"
)

// found are findings as conditions. One whose matter has a condition among all, or is
// what keeps the node from being Ready, does not come twice. A condition stays when its
// finding is over, and is False: the server would keep it as it was.
func found(findings []Finding, all, before []corev1.NodeCondition) (conditions []corev1.NodeCondition) {
	known := func(t corev1.NodeConditionType) bool {
		has := func(c corev1.NodeCondition) bool { return c.Type == t }
		return t == corev1.NodeReady || slices.ContainsFunc(all, has) || slices.ContainsFunc(conditions, has)
	}
	for _, f := range findings {
		if !known(f.Type) {
			conditions = append(conditions, corev1.NodeCondition{Type: f.Type, Status: corev1.ConditionTrue, Reason: findingStands, Message: f.Message})
		}
	}
	for _, c := range before {
		if c.Reason != findingStands && c.Reason != findingOver || known(c.Type) {
			continue
		}
		if findings != nil {
			c.Status, c.Reason, c.Message = corev1.ConditionFalse, findingOver, "bramble-agent doctor finds this no more"
		}
		conditions = append(conditions, c)
	}
	return conditions
}
