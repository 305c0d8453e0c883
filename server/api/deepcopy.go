package api

import (
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
	out.SoCTemperatureMilliC = copyOf(in.SoCTemperatureMilliC)
	out.Throttled = copyOf(in.Throttled)
	out.UnderVoltage = copyOf(in.UnderVoltage)
	out.UnderVoltageEvents = copyOf(in.UnderVoltageEvents)
	out.MemoryAvailableBytes = copyOf(in.MemoryAvailableBytes)
	out.StorageAvailableBytes = copyOf(in.StorageAvailableBytes)
	out.StorageReadOnly = copyOf(in.StorageReadOnly)
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
