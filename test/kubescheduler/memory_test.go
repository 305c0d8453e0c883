package kubescheduler

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"
	kube "k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"bramble.dev/bramble/server/scheduler"
)

// world is what both schedulers find: nodes with pods, and pods that wait.
type world struct {
	nodes           []*corev1.Node
	placed, waiting []*corev1.Pod
}

// TestMemory has each scheduler place the same 1,000 pods in memory: all of it
// runs but the requests to an API server. A binding is told and never written.
func TestMemory(t *testing.T) {
	const nodes, placed, waiting, rounds = 1000, 10_000, 1000, 3
	for _, kind := range kinds {
		w := world{placed: placedPods(placed, nodes), waiting: backlog(waiting, kind.change)}
		for i := range nodes {
			w.nodes = append(w.nodes, newNode(i))
		}
		var bramble, kubernetes []rate
		for range rounds {
			bramble = append(bramble, placeByBramble(t, w))
			kubernetes = append(kubernetes, placeByKubernetes(t, w))
		}
		what := fmt.Sprintf("in memory, %d %s, %d nodes with %d pods", waiting, kind.name, nodes, placed)
		compare(what, nodes, bramble, kubernetes)
	}
}

// stopwatch runs from its start until count bindings.
type stopwatch struct {
	mu     sync.Mutex
	bound  map[string]bool
	count  int
	began  time.Time
	cpu    time.Duration
	result chan rate
}

func newStopwatch(count int) *stopwatch {
	return &stopwatch{bound: map[string]bool{}, count: count, result: make(chan rate, 1)}
}

func (s *stopwatch) start() {
	runtime.GC() // of what was there before
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began, s.cpu = time.Now(), processor()
}

func (s *stopwatch) bind(pod string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bound[pod] = true
	if len(s.bound) == s.count {
		took, cpu := time.Since(s.began), processor()-s.cpu
		s.result <- rate{float64(s.count) / took.Seconds(), cpu / time.Duration(s.count)}
	}
}

func (s *stopwatch) wait(t *testing.T) rate {
	t.Helper()
	select {
	case r := <-s.result:
		return r
	case <-time.After(5 * time.Minute):
		s.mu.Lock()
		defer s.mu.Unlock()
		t.Fatalf("%d of %d pods were placed in 5 minutes", len(s.bound), s.count)
		return rate{}
	}
}

func placeByBramble(t *testing.T, w world) rate {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	watch := newStopwatch(len(w.waiting))
	s := scheduler.New(scheduler.Config{Cluster: &memory{world: w, stopwatch: watch}, Recorder: silent{}})
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	r := watch.wait(t)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return r
}

// memory is the Cluster of Bramble's scheduler. It starts the stopwatch when all
// is told.
type memory struct {
	world
	*stopwatch
}

func (m *memory) Follow(ctx context.Context, f func(scheduler.Event)) error {
	for _, n := range m.nodes {
		f(scheduler.Event{Node: n})
	}
	for _, pods := range [][]*corev1.Pod{m.placed, m.waiting} {
		for _, p := range pods {
			f(scheduler.Event{Pod: p})
		}
	}
	m.start()
	f(scheduler.Event{Synced: true})
	<-ctx.Done()
	return ctx.Err()
}

func (m *memory) Bind(_ context.Context, p *corev1.Pod, _ string) error {
	m.bind(p.Name)
	return nil
}

func (m *memory) Pod(context.Context, string, string) (*corev1.Pod, error) {
	panic("nobody asks for a pod")
}
func (m *memory) Unschedulable(context.Context, *corev1.Pod, string, string) error { return nil }
func (m *memory) Evict(context.Context, *corev1.Pod) error                         { return nil }

// silent is the recorder of both.
type silent struct{}

func (silent) Event(apiruntime.Object, string, string, string) {}
func (silent) Eventf(apiruntime.Object, apiruntime.Object, string, string, string, string, ...any) {
}
func (s silent) WithLogger(klog.Logger) events.EventRecorderLogger { return s }

func placeByKubernetes(t *testing.T, w world) rate {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var objects []apiruntime.Object
	for _, n := range w.nodes {
		objects = append(objects, n)
	}
	for _, pods := range [][]*corev1.Pod{w.placed, w.waiting} {
		for _, p := range pods {
			objects = append(objects, p)
		}
	}
	objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	client := fake.NewSimpleClientset(objects...)
	informers := kube.NewInformerFactory(client, 0, nil)
	watch := newStopwatch(len(w.waiting))
	profile, err := defaultProfile()
	if err != nil {
		t.Fatal(err)
	}
	profile.Plugins.Bind = config.PluginSet{Enabled: []config.Plugin{{Name: binder{}.Name()}}, Disabled: []config.Plugin{{Name: "*"}}}
	s, err := kube.New(ctx, client, informers, nil,
		func(string) events.EventRecorderLogger { return silent{} },
		kube.WithProfiles(profile),
		kube.WithFrameworkOutOfTreeRegistry(frameworkruntime.Registry{
			binder{}.Name(): func(context.Context, apiruntime.Object, fwk.Handle) (fwk.Plugin, error) { return binder{watch}, nil },
		}))
	if err != nil {
		t.Fatal(err)
	}
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	if err := s.WaitForHandlersSync(ctx); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	watch.start()
	group.Go(func() { s.Run(ctx) })
	r := watch.wait(t)
	cancel()
	group.Wait()
	informers.Shutdown()
	return r
}

// defaultProfile is Kubernetes' default.
func defaultProfile() (config.KubeSchedulerProfile, error) {
	var versioned configv1.KubeSchedulerConfiguration
	scheme.Scheme.Default(&versioned)
	var c config.KubeSchedulerConfiguration
	if err := scheme.Scheme.Convert(&versioned, &c, nil); err != nil {
		return config.KubeSchedulerProfile{}, err
	}
	return c.Profiles[0], nil
}

// binder is a BindPlugin that writes nothing.
type binder struct{ *stopwatch }

func (binder) Name() string { return "Stopwatch" }

func (b binder) Bind(_ context.Context, _ fwk.CycleState, p *corev1.Pod, _ string) *fwk.Status {
	b.bind(p.Name)
	return nil
}
