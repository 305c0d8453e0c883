package report_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"bramble.dev/bramble/hw"
	"bramble.dev/bramble/nodeagent/report"
	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/client"
)

// pi4 is a Raspberry Pi 4 with a camera and a bus of I2C.
func pi4() hw.Snapshot {
	revision := hw.ParseRevision(0xc03114)
	return hw.Snapshot{
		Complete: true,
		Identity: hw.Identity{
			Model: "Raspberry Pi 4 Model B Rev 1.4", SoC: "BCM2711", Revision: &revision, PageSize: 4096,
			Processor: hw.Processor{Arch: "arm64", Variant: "v8", Features: []string{"fp", "asimd", "evtstrm", "crc32", "cpuid"}},
		},
		Devices: []hw.Device{
			{Class: hw.Camera, Name: "video0"}, {Class: hw.I2C, Name: "i2c-1"}, {Class: hw.I2C, Name: "i2c-20"},
			{Class: hw.NPU, Name: "hailo0"}, {Class: hw.USB, Name: "1-1"},
		},
	}
}

func pi4Labels() map[string]string {
	return map[string]string{
		"edge.bramble.dev/model": "Raspberry-Pi-4-Model-B-Rev-1.4", "edge.bramble.dev/type": "4B", "edge.bramble.dev/soc": "BCM2711",
		"edge.bramble.dev/revision": "c03114", "edge.bramble.dev/memory-mb": "4096", "edge.bramble.dev/page-size": "4096", "edge.bramble.dev/arch-variant": "v8",
		"feature.node.kubernetes.io/cpu-cpuid.ASIMD": "true", "feature.node.kubernetes.io/cpu-cpuid.CRC32": "true",
		"edge.bramble.dev/camera": "true", "edge.bramble.dev/i2c": "true", "edge.bramble.dev/npu": "true", "edge.bramble.dev/hailo": "true",
	}
}

func TestBoardLabels(t *testing.T) {
	got := report.BoardLabels(pi4())
	if diff := cmp.Diff(pi4Labels(), got); diff != "" {
		t.Error(diff)
	}
	s := pi4()
	s.Identity = hw.Identity{Model: "  ä weird\tboard (that has a name which is much longer than a label's value may be)", Processor: hw.Processor{Arch: "amd64", Features: []string{"aes", "avx2", "fpu"}}}
	s.Devices = nil
	got = report.BoardLabels(s)
	if len(got) != 3 || got["feature.node.kubernetes.io/cpu-cpuid.AESNI"] != "true" {
		t.Errorf("of a PC: %v", got)
	}
	for label, value := range got {
		if errs := append(validation.IsValidLabelValue(value), validation.IsQualifiedName(label)...); len(errs) > 0 || !api.IsBoardLabel(label) {
			t.Errorf("%s: %q: %v", label, value, errs)
		}
	}
}

// patched keeps a Node and merges what is sent to it (RFC 7386).
type patched struct {
	mu     sync.Mutex // protects all below
	node   map[string]any
	writes int
	deny   bool // to change labels
}

func (p *patched) read() *corev1.Node {
	p.mu.Lock()
	defer p.mu.Unlock()
	data, _ := json.Marshal(p.node)
	var node corev1.Node
	_ = json.Unmarshal(data, &node)
	return &node
}

func (p *patched) merge(change any) {
	data, _ := json.Marshal(change)
	var body map[string]any
	_ = json.Unmarshal(data, &body)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes++
	p.node = merged(p.node, body).(map[string]any)
}

func merged(old, change any) any {
	fields, ok := change.(map[string]any)
	if !ok {
		return change
	}
	out, _ := old.(map[string]any)
	if out == nil {
		out = map[string]any{}
	}
	for name, value := range fields {
		if value == nil {
			delete(out, name)
		} else {
			out[name] = merged(out[name], value)
		}
	}
	return out
}

func (p *patched) GetNode(context.Context, string) (*corev1.Node, error) {
	if node := p.read(); node.Name != "" {
		return node, nil
	}
	return nil, notFound("pi")
}

func (p *patched) CreateNode(_ context.Context, n *corev1.Node) (*corev1.Node, error) {
	p.merge(n)
	return p.read(), nil
}

func (p *patched) PatchNode(_ context.Context, _ string, c client.Patch) (*corev1.Node, error) {
	if p.deny {
		return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "pi", nil)
	}
	p.merge(json.RawMessage(c.Body))
	return p.read(), nil
}

func (p *patched) PatchNodeStatus(ctx context.Context, _ string, c client.Patch) (*corev1.Node, error) {
	p.merge(json.RawMessage(c.Body))
	return p.read(), nil
}

// boarded runs a reporter of a board that can be changed.
type boarded struct {
	*report.Node
	mu       sync.Mutex // protects all below
	snapshot hw.Snapshot
	devices  *report.Devices
}

func newBoarded(t *testing.T, s *patched) *boarded {
	b := &boarded{}
	b.Node = report.NewNode(s, "pi", report.System{Root: t.TempDir(), Data: "/"}, func() report.Health {
		b.mu.Lock()
		defer b.mu.Unlock()
		return report.Health{Devices: b.devices}
	}, quiet())
	b.Node.Labels = func() (map[string]string, bool) {
		b.mu.Lock()
		defer b.mu.Unlock()
		return report.BoardLabels(b.snapshot), b.snapshot.Complete
	}
	return b
}

func (b *boarded) set(s hw.Snapshot, amounts map[corev1.ResourceName]int64) {
	b.mu.Lock()
	b.snapshot = s
	if b.devices = nil; amounts != nil {
		b.devices = &report.Devices{Capacity: amounts, Allocatable: amounts}
	}
	b.mu.Unlock()
	time.Sleep(time.Minute)
	synctest.Wait()
}

// TestLabelsFollowTheBoard holds that the agent sets, changes and removes its own
// labels, and nobody else's; and that an agent which knows nothing yet changes nothing.
func TestLabelsFollowTheBoard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &patched{}
		check := func(what string, want map[string]string, i2c string) {
			t.Helper()
			node := s.read()
			for _, label := range []string{corev1.LabelArchStable, corev1.LabelOSStable, corev1.LabelHostname} {
				if node.Labels[label] == "" {
					t.Errorf("%s: no label %s", what, label)
				}
				delete(node.Labels, label)
			}
			if diff := cmp.Diff(want, node.Labels); diff != "" {
				t.Errorf("%s: %s", what, diff)
			}
			for _, list := range []corev1.ResourceList{node.Status.Capacity, node.Status.Allocatable} {
				if got := list["edge.bramble.dev/i2c"]; got.String() != i2c || len(list) < 4 {
					t.Errorf("%s: %v", what, list)
				}
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		b, ended := newBoarded(t, s), make(chan struct{})
		go func() { defer close(ended); _ = b.Run(ctx) }()
		b.set(pi4(), map[corev1.ResourceName]int64{"edge.bramble.dev/i2c": 2})
		want := pi4Labels()
		check("at first", want, "2")

		s.merge(map[string]any{
			"metadata": map[string]any{"labels": map[string]string{"edge.bramble.dev/spi": "soldered", "edge.bramble.dev/site": "attic", "disk": "ssd"}},
			"status":   map[string]any{"capacity": map[string]string{"example.com/dongle": "1"}},
		})
		want["edge.bramble.dev/spi"], want["edge.bramble.dev/site"], want["disk"] = "soldered", "attic", "ssd"
		now := pi4()
		now.Devices = []hw.Device{{Class: hw.SPI, Name: "spidev0.0"}, {Class: hw.Camera, Name: "video0"}}
		now.Identity.Model = "Raspberry Pi 4 Model B Rev 1.5"
		b.set(now, map[corev1.ResourceName]int64{})
		want["edge.bramble.dev/model"] = "Raspberry-Pi-4-Model-B-Rev-1.5"
		for _, kind := range []string{"i2c", "npu", "hailo"} {
			delete(want, "edge.bramble.dev/"+kind)
		}
		check("without what was unplugged", want, "0")
		if got := s.read().Status.Capacity["example.com/dongle"]; got.String() != "1" {
			t.Errorf("another's resource: %v", got)
		}
		if _, there := s.read().Status.Capacity["edge.bramble.dev/i2c"]; there {
			t.Error("what the node has no more is there with 0")
		}
		b.set(now, map[corev1.ResourceName]int64{"edge.bramble.dev/i2c": 1})
		stop()
		<-ended

		b = newBoarded(t, s)
		running(t, b.Run)
		b.set(hw.Snapshot{}, nil)
		check("by an agent that knows nothing yet", want, "1")
		writes := s.writes
		b.set(now, map[corev1.ResourceName]int64{"edge.bramble.dev/i2c": 1})
		check("by an agent that was started again", want, "1")
		if s.writes > writes+1 { // the status, now that it is whole
			t.Errorf("%d writes of nothing new", s.writes-writes)
		}
		s.deny = true
		now.Devices = nil
		b.set(now, map[corev1.ResourceName]int64{})
		check("refused", want, "0")
		writes = s.writes
		b.set(now, map[corev1.ResourceName]int64{})
		if s.writes != writes {
			t.Errorf("%d writes of nothing new, refused", s.writes-writes)
		}
	})
}
