package eviction_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/eviction"
)

// fake notes which pods are evicted when, and what people are told.
type fake struct {
	mu    sync.Mutex
	began time.Time
	gone  map[string]time.Duration
	told  []string
	fails int // that many evictions fail
}

func (f *fake) Evict(_ context.Context, p *corev1.Pod) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fails > 0 {
		f.fails--
		return errors.New("the disk is full")
	}
	f.gone[p.Name] = time.Since(f.began)
	return nil
}

func (f *fake) Event(_ runtime.Object, _, _, message string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = append(f.told, message)
}

func (f *fake) evicted() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for name, after := range f.gone {
		all = append(all, name+" "+after.String())
	}
	slices.Sort(all)
	return all
}

// with runs do beside an Evictor that runs, in a bubble of time.
func with(t *testing.T, do func(*fake, *eviction.Evictor)) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{began: time.Now(), gone: map[string]time.Duration{}}
		e := eviction.New(eviction.Config{Cluster: f, Recorder: f, Log: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		synctest.Wait()
		do(f, e)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func node(taints ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	for _, key := range taints {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute})
	}
	return n
}

// pod is on n and tolerates each key for that many seconds; -1: for good.
func pod(name string, tolerates map[string]int64) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{NodeName: "n"},
	}
	for key, seconds := range tolerates {
		t := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
		if seconds >= 0 {
			t.TolerationSeconds = &seconds
		}
		p.Spec.Tolerations = append(p.Spec.Tolerations, t)
	}
	return p
}

func moves(p *corev1.Pod) *corev1.Pod {
	p.Annotations = map[string]string{api.AnnotationFailover: api.FailoverMove}
	return p
}

func TestWhoMustGoAndWhen(t *testing.T) {
	const away = corev1.TaintNodeUnreachable
	forA := func(seconds int64) map[string]int64 { return map[string]int64{"a": seconds} }
	with(t, func(f *fake, e *eviction.Evictor) {
		for _, p := range []*corev1.Pod{
			pod("intolerant", nil), pod("patient", forA(-1)), pod("minute", forA(60)), pod("negative", forA(-1)),
			pod("both", map[string]int64{"a": 90, "b": 30}), pod("endless", forA(1<<62)),
			pod("bare", map[string]int64{"a": -1, "b": -1, away: 10}),
			moves(pod("moving", map[string]int64{"a": -1, "b": -1, away: 10})),
		} {
			if p.Name != "both" && p.Name != "bare" && p.Name != "moving" && len(p.Spec.Tolerations) > 0 {
				p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: "b", Operator: corev1.TolerationOpExists})
			}
			if p.Name == "negative" {
				below := int64(-5)
				p.Spec.Tolerations[0].TolerationSeconds = &below
			}
			e.Pod(p, false)
		}
		pass(time.Second)
		if got := f.evicted(); len(got) > 0 {
			t.Errorf("evicted without a taint: %v", got)
		}
		e.Node(node("a", "b", away), false)
		pass(time.Hour)
		// Those that do not tolerate unreachable are bare, and so kept.
		want := []string{"both 31s", "intolerant 1s", "minute 1m1s", "moving 11s", "negative 1s"}
		if got := f.evicted(); !slices.Equal(got, want) {
			t.Errorf("evicted %v, want %v", got, want)
		}
	})
}

func TestATaintThatGoesTakesTheThreatWithIt(t *testing.T) {
	with(t, func(f *fake, e *eviction.Evictor) {
		e.Pod(pod("p", map[string]int64{"a": 60}), false)
		e.Node(node("a"), false)
		pass(59 * time.Second)
		e.Node(node(), false)
		pass(time.Hour)
		if got := f.evicted(); len(got) > 0 {
			t.Errorf("evicted %v", got)
		}
		if len(f.told) != 1 || f.told[0] != "Cancelling deletion of Pod default/p" {
			t.Errorf("told %q", f.told)
		}
		// It has its whole time again.
		e.Node(node("a"), false)
		pass(59 * time.Second)
		if got := f.evicted(); len(got) > 0 {
			t.Errorf("too early: %v", got)
		}
		pass(time.Second)
		if got := f.evicted(); len(got) != 1 {
			t.Errorf("not evicted: %v", got)
		}
	})
}

func TestPodsThatEndAreLeftAlone(t *testing.T) {
	with(t, func(f *fake, e *eviction.Evictor) {
		done := pod("done", nil)
		done.Status.Phase = corev1.PodSucceeded
		going := pod("going", nil)
		going.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		left := pod("left", map[string]int64{"a": 10})
		waiting := pod("waiting", nil)
		waiting.Spec.NodeName = ""
		for _, p := range []*corev1.Pod{done, going, left, waiting} {
			e.Pod(p, false)
		}
		e.Node(node("a"), false)
		e.Pod(left, true)
		pass(time.Hour)
		if got := f.evicted(); len(got) > 0 {
			t.Errorf("evicted %v", got)
		}
	})
}

func TestEvictionsThatFailAreTriedAgain(t *testing.T) {
	with(t, func(f *fake, e *eviction.Evictor) {
		f.fails = 3
		e.Node(node("a"), false)
		e.Pod(pod("p", nil), false)
		pass(time.Minute)
		if got := strings.Join(f.evicted(), " "); got != "p 3s" {
			t.Errorf("evicted %q", got)
		}
	})
}
