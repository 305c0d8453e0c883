package nodeagent

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/pod"
	"bramble.dev/bramble/nodeagent/state"
	"bramble.dev/bramble/server/api"
)

// hands notes what the workers are told.
type hands struct {
	set     map[string]pod.Desired
	removed []string
}

func (h *hands) Set(d pod.Desired)     { h.set[string(d.Pod.UID)] = d }
func (h *hands) Known(uid string) bool { _, ok := h.set[uid]; return ok }
func (h *hands) Remove(uid string) {
	delete(h.set, uid)
	h.removed = append(h.removed, uid)
}

func (h *hands) uids() []string { return slices.Sorted(maps.Keys(h.set)) }

// engineOf lists pods by uid.
type engineOf []string

func (e engineOf) List(context.Context) ([]container.Pod, error) {
	var all []container.Pod
	for _, uid := range e {
		all = append(all, container.Pod{UID: uid})
	}
	return all, nil
}

// bed is a node's desires with a switch for whether the epoch is known.
type bed struct {
	*desires
	hands   *hands
	dir     string
	known   bool
	remains []string
}

func newBed(t *testing.T, engine ...string) *bed {
	dir := filepath.Join(t.TempDir(), "state")
	if err := state.Join(dir, state.Facts{NodeName: "pi", PodCIDR: "10.100.1.0/24"}, state.Identity{}); err != nil {
		t.Fatal(err)
	}
	return openBed(t, dir, engine...)
}

func openBed(t *testing.T, dir string, engine ...string) *bed {
	log := slog.New(slog.DiscardHandler)
	record, err := state.Open(dir, log)
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{hands: &hands{set: map[string]pod.Desired{}}, dir: dir, known: true}
	b.desires = newDesires(record, engineOf(engine), func() bool { return b.known }, log)
	b.desires.workers, b.desires.forget = b.hands, func(string) {}
	b.desires.remains = func(context.Context) ([]string, error) { return b.remains, nil }
	return b
}

func podOf(uid string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p-" + uid, UID: types.UID(uid)}}
}

func (b *bed) replace(t *testing.T, uids ...string) {
	t.Helper()
	var list []any
	for _, uid := range uids {
		list = append(list, podOf(uid))
	}
	if err := b.Replace(list, ""); err != nil {
		t.Fatal(err)
	}
}

func TestListBecomesDesired(t *testing.T) {
	b := newBed(t, "a", "b", "stray")
	b.replace(t, "a", "b")
	b.replace(t, "b", "c")
	if err := b.sweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b", "c"}, b.hands.uids()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a", "stray"}, slices.Compact(b.hands.removed)); diff != "" {
		t.Error(diff)
	}
	if kept := openBed(t, b.dir).record.Pod("a"); kept == nil || kept.Pod.DeletionTimestamp == nil {
		t.Error("a pod that goes would come back after a power cut")
	}
}

func TestUnknownEpochDeletesNothing(t *testing.T) {
	b := newBed(t, "a", "stray")
	b.replace(t, "a")
	b.known = false
	b.replace(t, "new")
	if err := b.Delete(podOf("a")); err != nil {
		t.Fatal(err)
	}
	going := podOf("a")
	now := metav1.Now()
	going.DeletionTimestamp = &now
	if err := b.Update(going); err != nil {
		t.Fatal(err)
	}
	if err := b.sweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(b.hands.removed) != 0 || b.hands.set["a"].Pod.DeletionTimestamp != nil {
		t.Errorf("removed %v, a is %+v", b.hands.removed, b.hands.set["a"].Pod)
	}
	if diff := cmp.Diff([]string{"a", "new"}, b.hands.uids()); diff != "" {
		t.Error(diff)
	}
}

// TestUnknownEpochRestores: a board that finds another database after a power
// cut runs what it ran.
func TestUnknownEpochRestores(t *testing.T) {
	b := newBed(t)
	b.replace(t, "a")
	b = openBed(t, b.dir)
	b.known = false
	b.replace(t, "new")
	if diff := cmp.Diff([]string{"a", "new"}, b.hands.uids()); diff != "" {
		t.Error(diff)
	}
}

func TestRestoreWithoutServer(t *testing.T) {
	b := newBed(t)
	exclusive := podOf("x")
	exclusive.Annotations = map[string]string{api.AnnotationFailover: api.FailoverExclusive}
	for _, p := range []*corev1.Pod{podOf("a"), exclusive} {
		if err := b.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	addresses := fmt.Sprint(b.hands.set["a"].Address, b.hands.set["x"].Address)
	b = openBed(t, b.dir)
	b.restore()
	if got := fmt.Sprint(b.hands.set["a"].Address, b.hands.set["x"].Address); got != addresses {
		t.Errorf("addresses %s, want %s", got, addresses)
	}
	if b.hands.set["a"].Hold || !b.hands.set["x"].Hold {
		t.Error("an exclusive pod waits for a lease, and no other does")
	}
	b.lease()
	if b.hands.set["x"].Hold {
		t.Error("an exclusive pod starts with the lease")
	}
}

// TestSweepTakesWhatTheEngineDoesNotKnow: a network or a directory of a pod whose
// record was lost would keep its address until the next boot.
func TestSweepTakesWhatTheEngineDoesNotKnow(t *testing.T) {
	b := newBed(t, "a")
	b.replace(t, "a")
	b.remains = []string{"a", "lost", "lost"}
	b.known = false
	if err := b.sweepOnce(t.Context()); err != nil || len(b.hands.removed) != 0 {
		t.Errorf("by an unknown server: removed %v, %v", b.hands.removed, err)
	}
	b.known = true
	if err := b.sweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"lost"}, slices.Compact(b.hands.removed)); diff != "" {
		t.Error(diff)
	}
}

// TestEndIsTheEnd: what is still on its way of a pod that is gone does not bring
// it back.
func TestEndIsTheEnd(t *testing.T) {
	b := newBed(t)
	b.replace(t, "a")
	b.end("a")
	b.hands.removed = nil
	if err := b.Update(podOf("a")); err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(podOf("a")); err != nil {
		t.Fatal(err)
	}
	if b.record.Pod("a") != nil || len(b.hands.set) != 0 || len(b.hands.removed) != 0 {
		t.Errorf("record %v, workers %v, removed %v", b.record.Pod("a"), b.hands.uids(), b.hands.removed)
	}
}

// TestAnAddressStaysWithItsPod: where the record of a pod was lost, a new pod that
// comes before it in the server's list does not get its address.
func TestAnAddressStaysWithItsPod(t *testing.T) {
	b := newBed(t)
	fresh := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "fresh"}}
	runs := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b", UID: "runs"}, Status: corev1.PodStatus{PodIP: "10.100.1.2"}}
	if err := b.Replace([]any{fresh, runs}, "1"); err != nil {
		t.Fatal(err)
	}
	if got := b.hands.set["runs"].Address.String(); got != "10.100.1.2" {
		t.Errorf("the running pod's address is %s", got)
	}
	if got := b.hands.set["fresh"].Address.String(); got == "10.100.1.2" {
		t.Error("the new pod has the running pod's address")
	}
}
