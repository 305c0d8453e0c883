package report_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bramble.dev/bramble/nodeagent/report"
	"bramble.dev/bramble/server/client"
)

// server takes reports and notes them; while away it answers nothing.
type server struct {
	mu    sync.Mutex
	away  bool
	calls []string
	lease *coordinationv1.Lease
	node  *corev1.Node
	gone  bool // it has no pod
}

func (s *server) call(format string, args ...any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return errors.New("connection refused")
	}
	s.calls = append(s.calls, fmt.Sprintf(format, args...))
	return nil
}

func (s *server) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

func (s *server) setAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

func notFound(name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, name)
}

func (s *server) PatchPodStatus(_ context.Context, ns, name string, p client.Patch) (*corev1.Pod, error) {
	var body struct {
		Metadata struct{ UID string }
		Status   corev1.PodStatus
	}
	if err := json.Unmarshal(p.Body, &body); err != nil {
		return nil, err
	}
	if s.gone {
		return nil, notFound(name)
	}
	return nil, s.call("status %s/%s %s %s", ns, name, body.Metadata.UID, body.Status.Phase)
}

func (s *server) DeletePod(_ context.Context, ns, name string, o metav1.DeleteOptions) error {
	return s.call("delete %s/%s %s %d", ns, name, *o.Preconditions.UID, *o.GracePeriodSeconds)
}

func (s *server) CreateEvent(_ context.Context, e *corev1.Event) (*corev1.Event, error) {
	return e, s.call("event %s %s %s", e.InvolvedObject.FieldPath, e.Reason, e.Message)
}

func (s *server) PatchEvent(_ context.Context, _, _ string, p client.Patch) (*corev1.Event, error) {
	var body struct {
		Count   int
		Message string
	}
	_ = json.Unmarshal(p.Body, &body)
	return nil, s.call("count %d %s", body.Count, body.Message)
}

func (s *server) GetLease(context.Context, string) (*coordinationv1.Lease, error) {
	if err := s.call("get lease"); err != nil {
		return nil, err
	}
	if s.lease == nil {
		return nil, notFound("lease")
	}
	return s.lease, nil
}

func (s *server) CreateLease(_ context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	s.lease = l
	return l, s.call("create lease")
}

func (s *server) UpdateLease(_ context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if err := s.call("renew"); err != nil {
		return nil, err
	}
	if s.lease == nil {
		return nil, notFound("lease")
	}
	return l, nil
}

func (s *server) Beat(context.Context) error {
	if err := s.call("beat"); err != nil {
		return err
	}
	if s.lease == nil {
		return errors.New("the stream ended")
	}
	return nil
}

func (s *server) GetNode(context.Context, string) (*corev1.Node, error) {
	if err := s.call("get node"); err != nil {
		return nil, err
	}
	if s.node == nil {
		return nil, notFound("node")
	}
	return s.node, nil
}

func (s *server) CreateNode(_ context.Context, n *corev1.Node) (*corev1.Node, error) {
	s.node = n
	return n, s.call("create node")
}

func (s *server) PatchNode(context.Context, string, client.Patch) (*corev1.Node, error) {
	return nil, s.call("patch node")
}

func (s *server) PatchNodeStatus(_ context.Context, _ string, p client.Patch) (*corev1.Node, error) {
	var body struct{ Status corev1.NodeStatus }
	if err := json.Unmarshal(p.Body, &body); err != nil {
		return nil, err
	}
	for _, c := range body.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return nil, s.call("node ready %s", c.Status)
		}
	}
	return nil, s.call("node without condition")
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// running runs a part of the reports in the test's bubble.
func running(t *testing.T, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
}

func somePod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hello", UID: "1"}}
}

func phase(p corev1.PodPhase) corev1.PodStatus { return corev1.PodStatus{Phase: p} }

func TestStatusOnChangeOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		pods := report.NewPods(s, quiet())
		running(t, pods.Run)
		for range 3 {
			pods.Status(somePod(), phase(corev1.PodRunning))
			synctest.Wait()
		}
		known := somePod()
		known.UID, known.Status = "2", corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled}}}
		pods.Status(known, phase(corev1.PodRunning))
		synctest.Wait()
		if diff := cmp.Diff([]string{"status default/hello 1 Running"}, s.take()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestLatestStatusAfterAbsence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{away: true}
		pods := report.NewPods(s, quiet())
		running(t, pods.Run)
		pods.Status(somePod(), phase(corev1.PodPending))
		synctest.Wait()
		pods.Status(somePod(), phase(corev1.PodRunning))
		time.Sleep(time.Hour)
		s.setAway(false)
		pods.Status(somePod(), phase(corev1.PodSucceeded))
		pods.Retry()
		synctest.Wait()
		if diff := cmp.Diff([]string{"status default/hello 1 Succeeded"}, s.take()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestGoneAfterLastStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{away: true}
		pods := report.NewPods(s, quiet())
		var deleted []string
		pods.Deleted = func(uid string) { deleted = append(deleted, uid) }
		running(t, pods.Run)
		pods.Status(somePod(), phase(corev1.PodFailed))
		pods.Gone("1", somePod())
		time.Sleep(time.Minute)
		s.setAway(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"status default/hello 1 Failed", "delete default/hello 1 0"}, s.take()); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"1"}, deleted); diff != "" {
			t.Error(diff)
		}
	})
}

func TestStatusOfAPodThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{gone: true}
		pods := report.NewPods(s, quiet())
		running(t, pods.Run)
		pods.Status(somePod(), phase(corev1.PodRunning))
		synctest.Wait()
		pods.Gone("1", somePod())
		synctest.Wait()
		if diff := cmp.Diff([]string{"delete default/hello 1 0"}, s.take()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestEventsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		events := report.NewEvents(s, "pi", quiet())
		running(t, events.Run)
		for range 2 {
			events.Pod(somePod(), "main", corev1.EventTypeWarning, "BackOff", "again")
			synctest.Wait()
		}
		time.Sleep(11 * time.Minute)
		events.Pod(somePod(), "main", corev1.EventTypeWarning, "BackOff", "again")
		synctest.Wait()
		first := "event spec.containers{main} BackOff again"
		if diff := cmp.Diff([]string{first, "count 2 again", first}, s.take()); diff != "" {
			t.Error(diff)
		}
		s.setAway(true)
		for i := range 1000 {
			events.Pod(somePod(), fmt.Sprint(i), corev1.EventTypeNormal, "Pulled", "")
		}
		time.Sleep(time.Minute)
		s.setAway(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		calls := s.take()
		if len(calls) != 256 || calls[len(calls)-1] != "event spec.containers{999} Pulled " {
			t.Errorf("%d events came after the server was away, the last %q", len(calls), calls[len(calls)-1:])
		}
	})
}

// TestEventsThatGoOnAreCountedSeldom: a probe that fails each second for an hour.
func TestEventsThatGoOnAreCountedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		events := report.NewEvents(s, "pi", quiet())
		running(t, events.Run)
		for range 3600 {
			events.Pod(somePod(), "main", corev1.EventTypeWarning, "Unhealthy", "no")
			time.Sleep(time.Second)
		}
		synctest.Wait()
		calls := s.take()
		if want := 25 + 11; len(calls) != want || calls[len(calls)-1] != "count 3325 no" {
			t.Errorf("%d calls, the last %q; want %d", len(calls), calls[len(calls)-1], want)
		}
	})
}

// TestVariedEventsAreOne: of events that differ in their messages alone, the first
// ten are told each, and then one counts.
func TestVariedEventsAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		events := report.NewEvents(s, "pi", quiet())
		running(t, events.Run)
		for i := range 20 {
			events.Pod(somePod(), "main", corev1.EventTypeWarning, "Unhealthy", fmt.Sprint("garbage ", i))
			synctest.Wait()
		}
		events.Pod(somePod(), "main", corev1.EventTypeWarning, "Unhealthy", "garbage 3")
		synctest.Wait()
		calls := s.take()
		var want []string
		for i := range 10 {
			want = append(want, fmt.Sprint("event spec.containers{main} Unhealthy garbage ", i))
		}
		want = append(want, "event spec.containers{main} Unhealthy (combined from similar events): garbage 10")
		for n := 2; n <= 10; n++ {
			want = append(want, fmt.Sprintf("count %d (combined from similar events): garbage %d", n, 9+n))
		}
		if diff := cmp.Diff(append(want, "count 2 garbage 3"), calls); diff != "" {
			t.Error(diff)
		}
	})
}

func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		renewed, resumed := 0, 0
		lease := &report.Lease{Server: s, Node: "pi", Log: quiet(), Renewed: func() { renewed++ }, Resumed: func() { resumed++ }}
		running(t, lease.Run)
		synctest.Wait()
		if diff := cmp.Diff([]string{"get lease", "create lease", "renew"}, s.take()); diff != "" {
			t.Error(diff)
		}
		time.Sleep(100 * time.Second)
		synctest.Wait()
		if calls := s.take(); len(calls) < 10 || len(calls) > 12 {
			t.Errorf("%d renewals in 100 s: %v", len(calls), calls)
		}
		if resumed != 2 {
			t.Errorf("resumed %d times, want 2: when the lease was made, and once more", resumed)
		}
		s.mu.Lock()
		s.lease = nil // the server was restarted: leases live in its memory
		s.mu.Unlock()
		time.Sleep(25 * time.Second)
		synctest.Wait()
		if s.lease == nil || *s.lease.Spec.HolderIdentity != "pi" {
			t.Errorf("the lease was not made anew: %v", s.take())
		}
		if resumed != 4 {
			t.Errorf("resumed %d times, want 4: the server may take this node for lost", resumed)
		}
	})
}

func TestNodeOnChangeOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		var mu sync.Mutex
		var health report.Health
		node := report.NewNode(s, "pi", report.System{Root: t.TempDir(), Data: "/"}, func() report.Health {
			mu.Lock()
			defer mu.Unlock()
			return health
		}, quiet())
		running(t, node.Run)
		time.Sleep(time.Hour)
		synctest.Wait()
		if diff := cmp.Diff([]string{"get node", "create node", "node ready True"}, s.take()); diff != "" {
			t.Error(diff)
		}
		node.Again()
		synctest.Wait()
		if diff := cmp.Diff([]string{"get node", "node ready True"}, s.take()); diff != "" {
			t.Error(diff)
		}
		mu.Lock()
		health.NetworkError = "no way out"
		mu.Unlock()
		node.Look()
		synctest.Wait()
		if diff := cmp.Diff([]string{"node ready False"}, s.take()); diff != "" {
			t.Error(diff)
		}
	})
}
