package server

import (
	"context"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bramble.dev/bramble/server/api"
)

// A board's past is kept for an hour, and at most so many reports of it: they come
// every half minute at the most, but for conditions.
const (
	boardPast    = time.Hour
	boardReports = 128
)

// boardHistory remembers what boards reported. It is safe for concurrent use. The zero
// value is ready.
type boardHistory struct {
	mu     sync.Mutex // protects boards
	boards map[string][]boardReport
}

// boardReport is small: there are a hundred of each node.
type boardReport struct {
	at    time.Time // monotonic
	soc   *int64    // m°C
	wrong []string
}

// note takes a report over; gone says that the node is.
func (h *boardHistory) note(n *api.NodeHardware, gone bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if gone {
		delete(h.boards, n.Name)
		return
	}
	if h.boards == nil {
		h.boards = map[string][]boardReport{}
	}
	report := boardReport{at: time.Now(), soc: n.Status.SoCTemperatureMilliC, wrong: n.Status.Wrong()}
	slices.Sort(report.wrong)
	all := append(h.boards[n.Name], report)
	old := 0 // of what is older than an hour, the last still holds when it begins
	for old+1 < len(all) && report.at.Sub(all[old+1].at) > boardPast {
		old++
	}
	h.boards[n.Name] = slices.Delete(all, 0, max(old, len(all)-boardReports))
}

// read returns a node's history, or a StatusError.
func (h *boardHistory) read(_ context.Context, node string) (*api.NodeHardwareHistory, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all, known := h.boards[node]
	if !known {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: api.Group, Resource: "nodehardwarehistories"}, node)
	}
	out := &api.NodeHardwareHistory{ObjectMeta: metav1.ObjectMeta{Name: node}}
	for _, r := range all {
		out.Samples = append(out.Samples, api.HardwareSample{
			AgeSeconds: int64(time.Since(r.at).Seconds()), SoCTemperatureMilliC: r.soc, Conditions: r.wrong,
		})
	}
	return out, nil
}
