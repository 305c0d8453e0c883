package report_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bramble.dev/bramble/hw"
	"bramble.dev/bramble/nodeagent/report"
	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/client"
)

// fakeBoard says what it is told, and a fake server takes patches of its reports.
type fakeBoard struct {
	mu      sync.Mutex
	s       hw.Snapshot
	changed chan struct{}
	began   time.Time
}

func newFakeBoard() *fakeBoard {
	b := &fakeBoard{changed: make(chan struct{}), began: time.Now()}
	b.s.Identity.BootID, b.s.Complete = "boot", true
	soc(45_000)(&b.s)
	b.s.Throttle.Bits = hw.Reading[hw.ThrottleBits]{Source: "x"}
	return b
}

func (b *fakeBoard) Snapshot() hw.Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.s
	s.At = time.Since(b.began)
	s.Thermal.SoC.At = s.At
	return s
}

func (b *fakeBoard) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// set changes what it says, and says so.
func (b *fakeBoard) set(change func(*hw.Snapshot)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.s)
	close(b.changed)
	b.changed = make(chan struct{})
}

// live has it be read every 5 s for d.
func (b *fakeBoard) live(d time.Duration, change func(*hw.Snapshot)) {
	for range int(d / hw.Fast) {
		b.set(change)
		time.Sleep(hw.Fast)
	}
}

func soc(milliC int64) func(*hw.Snapshot) {
	return func(s *hw.Snapshot) { s.Thermal.SoC = hw.Reading[int64]{Value: milliC, Source: "zone"} }
}

type hardwareServer struct {
	mu      sync.Mutex
	there   bool
	err     error
	patches []map[string]any // of the status
	at      []time.Time
	created int
}

func (f *hardwareServer) CreateNodeHardware(_ context.Context, h *api.NodeHardware) (*api.NodeHardware, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.there, f.created = true, f.created+1
	return h, nil
}

func (f *hardwareServer) PatchNodeHardwareStatus(_ context.Context, name string, p client.Patch) (*api.NodeHardware, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	if !f.there {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "nodehardwares"}, name)
	}
	var body struct{ Status map[string]any }
	if err := json.Unmarshal(p.Body, &body); err != nil {
		return nil, err
	}
	f.patches, f.at = append(f.patches, body.Status), append(f.at, time.Now())
	return &api.NodeHardware{}, nil
}

// set changes what it does.
func (f *hardwareServer) set(change func()) {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// taken returns the patches since the last call.
func (f *hardwareServer) taken() []map[string]any {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	got := f.patches
	f.patches = nil
	return got
}

func withHardware(t *testing.T, test func(t *testing.T, b *fakeBoard, f *hardwareServer, h *report.Hardware)) {
	synctest.Test(t, func(t *testing.T) {
		b, f := newFakeBoard(), &hardwareServer{}
		h := report.NewHardware(f, b, "shelf", "/", slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- h.Run(ctx) }()
		defer func() {
			stop()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("Run returned %v", err)
			}
		}()
		synctest.Wait()
		test(t, b, f, h)
	})
}

// TestHardwareIsReported follows what is sent and what is not.
func TestHardwareIsReported(t *testing.T) {
	withHardware(t, func(t *testing.T, b *fakeBoard, f *hardwareServer, _ *report.Hardware) {
		b.set(soc(45_000))
		first := f.taken()
		if len(first) != 1 || first[0]["socTemperatureMilliC"] != 45_000.0 || first[0]["bootID"] != "boot" || f.created != 1 {
			t.Fatalf("first: %v, created %d", first, f.created)
		}
		if old, sent := first[0]["batteryPercent"]; !sent || old != nil {
			t.Errorf("what may be left of an earlier report is not taken back: %v", first[0])
		}
		// Within the dead band: nothing, until it is time again.
		b.live(20*time.Minute, soc(46_500))
		if got := f.taken(); len(got) != 0 {
			t.Errorf("within the dead band: %v", got)
		}
		b.live(11*time.Minute, soc(46_500))
		if got := f.taken(); len(got) != 1 {
			t.Errorf("after half an hour: %v", got)
		}
		// Beyond it: what changed alone, and not more often than every 30 s.
		f.set(func() { f.at = nil })
		b.live(5*time.Minute, soc(60_000))
		got := f.taken()
		if len(got) < 2 || got[0]["bootID"] != nil || got[0]["socTemperatureMilliC"] == nil {
			t.Errorf("when it grew warm: %v", got)
		}
		for i := 1; i < len(f.at); i++ {
			if wait := f.at[i].Sub(f.at[i-1]); wait < 30*time.Second {
				t.Errorf("two reports within %v", wait)
			}
		}
	})
}

// TestAConditionIsReportedAtOnce has the supply fail, and the reading that told of it go.
func TestAConditionIsReportedAtOnce(t *testing.T) {
	withHardware(t, func(t *testing.T, b *fakeBoard, f *hardwareServer, h *report.Hardware) {
		called := 0
		h.Changed = func() { called++ }
		b.live(time.Minute, soc(45_000))
		f.taken()
		b.set(func(s *hw.Snapshot) { s.Throttle.Bits.Value = 1 })
		got := f.taken()
		if len(got) != 1 || got[0]["underVoltage"] != true || called == 0 {
			t.Fatalf("got %v, told %d times", got, called)
		}
		if on := h.Conditions(); len(on) == 0 {
			t.Error("the node does not know of it")
		}
		b.live(time.Minute, func(s *hw.Snapshot) { s.Throttle.Bits.Err = hw.ErrAbsent })
		last := f.taken()
		if len(last) == 0 || last[0]["underVoltage"] != nil {
			t.Errorf("when it was told no more: %v", last)
		}
	})
}

// TestHardwareIsReportedAgain has the server forget, and then not answer for a while.
func TestHardwareIsReportedAgain(t *testing.T) {
	withHardware(t, func(t *testing.T, b *fakeBoard, f *hardwareServer, h *report.Hardware) {
		b.live(time.Minute, soc(45_000))
		f.taken()
		f.set(func() { f.there = false })
		h.Again()
		if got := f.taken(); len(got) != 1 || got[0]["bootID"] != "boot" || f.created != 2 {
			t.Errorf("after a restart of the server: %v, created %d", got, f.created)
		}
		f.set(func() { f.err = errors.New("out of reach") })
		h.Again()
		b.live(3*time.Minute, soc(45_000))
		f.set(func() { f.err = nil })
		b.live(2*time.Minute, soc(45_000))
		if got := f.taken(); len(got) != 1 || got[0]["bootID"] != "boot" {
			t.Errorf("when it answered again: %v", got)
		}
	})
}
