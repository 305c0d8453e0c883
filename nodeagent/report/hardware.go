package report

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/hw"
	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/client"
)

// HardwareServer is what the server does with a node's NodeHardware; *client.Client
// is one.
type HardwareServer interface {
	CreateNodeHardware(ctx context.Context, h *api.NodeHardware) (*api.NodeHardware, error)
	PatchNodeHardwareStatus(ctx context.Context, name string, p client.Patch) (*api.NodeHardware, error)
}

// Board reads sensors; *hw.Board is one.
type Board interface {
	Snapshot() hw.Snapshot
	Changed() <-chan struct{}
}

// Hardware reports what the node's board says: a condition that changes at once, a
// reading that leaves its dead band within Every, and all of it every
// api.HardwareEvery. Nothing of it touches the disk.
type Hardware struct {
	Server HardwareServer
	Board  Board
	Node   string
	Data   string        // a path on the file system that holds images and volumes
	Every  time.Duration // default 30 s
	Log    *slog.Logger
	// Changed, when set, is called when a condition changed. It must not block.
	Changed func()

	wake  chan struct{}
	again atomic.Bool // forget what was sent

	mu      sync.Mutex // protects verdict
	verdict hw.Verdict

	// Run's alone.
	judge  hw.Judge
	read   bool                    // all of the board, once
	sent   *api.NodeHardwareStatus // nil: not known
	sentAt time.Time
}

// NewHardware returns a reporter of a board; nothing is sent before Run.
func NewHardware(server HardwareServer, board Board, node, data string, log *slog.Logger) *Hardware {
	return &Hardware{Server: server, Board: board, Node: node, Data: data, Log: log, Every: 30 * time.Second, wake: make(chan struct{}, 1)}
}

// Again has all of it sent at once, though it did not change: the server keeps it in
// memory alone, and may have been started anew. It does not block.
func (h *Hardware) Again() {
	h.again.Store(true)
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Conditions are what is wrong with the board, as far as is known.
func (h *Hardware) Conditions() []hw.Condition {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.verdict.Conditions
}

// Run reports until ctx ends.
func (h *Hardware) Run(ctx context.Context) error {
	failures := 0
	timer := time.NewTimer(0)
	defer timer.Stop()
	changed := h.Board.Changed()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
			changed = h.Board.Changed()
		case <-h.wake:
		case <-timer.C:
		}
		status := h.look()
		if h.again.Swap(false) {
			h.sent = nil
		}
		wait := h.Every
		switch {
		case failures > 0 && time.Since(h.sentAt) < delay(failures):
			wait = delay(failures)
		case !h.due(status):
		default:
			h.sentAt = time.Now()
			if err := h.send(ctx, status); err != nil {
				failures++
				h.sent = nil
				h.Log.Debug("cannot report the board", "err", err)
				wait = delay(failures)
			} else {
				failures = 0
			}
		}
		timer.Reset(wait)
	}
}

// look judges what the board says now.
func (h *Hardware) look() api.NodeHardwareStatus {
	s := h.Board.Snapshot()
	v := h.judge.Take(s)
	h.read = s.Complete
	h.mu.Lock()
	news := !slices.Equal(h.verdict.Conditions, v.Conditions)
	h.verdict = v
	h.mu.Unlock()
	if news && h.Changed != nil {
		h.Changed()
	}
	var before []metav1.Condition
	if h.sent != nil {
		before = h.sent.Conditions
	}
	status := HardwareStatus(s, v, h.Data)
	status.Conditions = Conditions(v, before, time.Now())
	return status
}

// due says whether a status is to be sent now.
func (h *Hardware) due(now api.NodeHardwareStatus) bool {
	if h.sent == nil {
		return h.read
	}
	return Due(h.sent, &now, time.Since(h.sentAt), h.Every)
}

// Due says whether a board's status is to be sent, when sent was a while ago: at once if
// a condition changed, each api.HardwareEvery anyway, and else at most every so often, if
// a reading left its dead band. It is pure.
func Due(sent, now *api.NodeHardwareStatus, passed, every time.Duration) bool {
	return passed >= api.HardwareEvery || !slices.Equal(standing(sent.Conditions), standing(now.Conditions)) ||
		passed >= every && leftDeadBand(sent, now)
}

// standing is what conditions say, without their times.
func standing(conditions []metav1.Condition) (all []string) {
	for _, c := range conditions {
		all = append(all, c.Type+string(c.Status))
	}
	return all
}

// send reports what differs from what the server has.
func (h *Hardware) send(ctx context.Context, status api.NodeHardwareStatus) error {
	status.ObservedAt = metav1.NewTime(time.Now())
	change, err := difference(h.sent, &status)
	if err != nil {
		return err
	}
	patch, err := client.MergePatch(map[string]any{"status": change})
	if err != nil {
		return err
	}
	_, err = h.Server.PatchNodeHardwareStatus(ctx, h.Node, patch)
	if apierrors.IsNotFound(err) {
		if _, err = h.Server.CreateNodeHardware(ctx, &api.NodeHardware{ObjectMeta: metav1.ObjectMeta{Name: h.Node}}); err != nil {
			return err
		}
		_, err = h.Server.PatchNodeHardwareStatus(ctx, h.Node, patch)
	}
	if err == nil {
		h.sent = &status
	}
	return err
}

// difference is what a merge patch makes of one status the other, with null for what
// it has no more; of nil, all that the other has or has not.
func difference(from, to *api.NodeHardwareStatus) (map[string]any, error) {
	old, err := fieldsOf(from)
	if err != nil {
		return nil, err
	}
	now, err := fieldsOf(to)
	if err != nil {
		return nil, err
	}
	change := map[string]any{}
	for name := range allFields() {
		was, had := old[name]
		is, has := now[name]
		switch {
		case !has && (had || from == nil):
			change[name] = nil
		case has && !bytes.Equal(was, is):
			change[name] = is
		}
	}
	return change, nil
}

func fieldsOf(s *api.NodeHardwareStatus) (map[string]json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if s == nil {
		return fields, nil
	}
	data, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(data, &fields)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot encode the board's status: %w", err)
	}
	return fields, nil
}

// allFields are the names of all fields of the status in JSON.
func allFields() map[string]bool {
	names := map[string]bool{}
	for field := range reflect.TypeFor[api.NodeHardwareStatus]().Fields() {
		name, _, _ := bytes.Cut([]byte(field.Tag.Get("json")), []byte{','})
		names[string(name)] = true
	}
	return names
}
