package api

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopyInto copies all of in into out, which shares nothing with it.
func (in *NodeHardware) DeepCopyInto(out *NodeHardware) {
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	in.Status.DeepCopyInto(&out.Status)
}

// DeepCopy returns a copy that shares nothing with in.
func (in *NodeHardware) DeepCopy() *NodeHardware {
	if in == nil {
		return nil
	}
	out := new(NodeHardware)
	in.DeepCopyInto(out)
	return out
}

// DeepCopyObject is DeepCopy as runtime.Object wants it.
func (in *NodeHardware) DeepCopyObject() runtime.Object { return in.DeepCopy() }

// DeepCopyInto copies all of in into out, which shares nothing with it.
func (in *NodeHardwareStatus) DeepCopyInto(out *NodeHardwareStatus) {
	*out = *in
	in.ObservedAt.DeepCopyInto(&out.ObservedAt)
	for _, n := range []**int64{
		&out.SoCTemperatureMilliC,
		&out.SoCTemperatureRiseMilliC,
		&out.SoCTemperatureSoftMilliC,
		&out.SupplyMicroV,
		&out.BatteryPercent,
		&out.MemoryBytes,
		&out.MemoryAvailableBytes,
		&out.MemoryPressurePermille,
		&out.StorageBytes,
		&out.StorageAvailableBytes,
		&out.StorageErrors,
		&out.StorageUsedLifePercent,
		&out.UnderVoltageEvents,
		&out.LinkSpeedMbit,
		&out.WirelessSignalDBm,
	} {
		*n = copyOf(*n)
	}
	for _, b := range []**bool{&out.Throttled, &out.UnderVoltage, &out.UnderVoltageSinceBoot, &out.OnBattery, &out.StorageReadOnly} {
		*b = copyOf(*b)
	}
	out.Conditions = slices.Clone(in.Conditions) // without pointers
}

// DeepCopyObject returns a copy that shares nothing with in.
func (in *NodeHardwareHistory) DeepCopyObject() runtime.Object {
	if in == nil {
		return (*NodeHardwareHistory)(nil)
	}
	out := &NodeHardwareHistory{TypeMeta: in.TypeMeta, Samples: slices.Clone(in.Samples)}
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	for i := range out.Samples {
		s := &out.Samples[i]
		s.SoCTemperatureMilliC, s.Conditions = copyOf(s.SoCTemperatureMilliC), slices.Clone(s.Conditions)
	}
	return out
}

// DeepCopyObject returns a copy that shares nothing with in.
func (in *NodeHardwareHistoryList) DeepCopyObject() runtime.Object {
	if in == nil {
		return (*NodeHardwareHistoryList)(nil)
	}
	out := &NodeHardwareHistoryList{TypeMeta: in.TypeMeta}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range in.Items {
		out.Items = append(out.Items, *in.Items[i].DeepCopyObject().(*NodeHardwareHistory))
	}
	return out
}

// DeepCopyObject returns a copy that shares nothing with in.
func (in *NodeHardwareList) DeepCopyObject() runtime.Object {
	if in == nil {
		return (*NodeHardwareList)(nil)
	}
	out := &NodeHardwareList{TypeMeta: in.TypeMeta}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	if in.Items != nil {
		out.Items = make([]NodeHardware, len(in.Items))
		for i := range in.Items {
			in.Items[i].DeepCopyInto(&out.Items[i])
		}
	}
	return out
}

// DeepCopyInto copies all of in into out, which shares nothing with it.
func (in *Placement) DeepCopyInto(out *Placement) {
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	in.Status.DeepCopyInto(&out.Status)
}

// DeepCopy returns a copy that shares nothing with in.
func (in *Placement) DeepCopy() *Placement {
	if in == nil {
		return nil
	}
	out := new(Placement)
	in.DeepCopyInto(out)
	return out
}

// DeepCopyObject is DeepCopy as runtime.Object wants it.
func (in *Placement) DeepCopyObject() runtime.Object { return in.DeepCopy() }

// DeepCopyInto copies all of in into out, which shares nothing with it.
func (in *PlacementStatus) DeepCopyInto(out *PlacementStatus) {
	*out = *in
	in.DecidedAt.DeepCopyInto(&out.DecidedAt)
	out.Rejections = append([]PlacementRejection(nil), in.Rejections...)
	out.Nodes = append([]PlacementNode(nil), in.Nodes...)
	for i, n := range in.Nodes {
		out.Nodes[i].Reasons = append([]string(nil), n.Reasons...)
		out.Nodes[i].Waived = append([]string(nil), n.Waived...)
		out.Nodes[i].Scores = append([]PlacementScore(nil), n.Scores...)
	}
}

// DeepCopyObject returns a copy that shares nothing with in.
func (in *PlacementList) DeepCopyObject() runtime.Object {
	if in == nil {
		return (*PlacementList)(nil)
	}
	out := &PlacementList{TypeMeta: in.TypeMeta}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	if in.Items != nil {
		out.Items = make([]Placement, len(in.Items))
		for i := range in.Items {
			in.Items[i].DeepCopyInto(&out.Items[i])
		}
	}
	return out
}

// copyOf returns a pointer to a copy of what p points to.
func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
