package scheduler

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"bramble.dev/bramble/server/api"
)

// maxActing is how many bindings and conditions are written at the same time,
// so that the store can commit them together.
const maxActing = 16

// Cluster is where the scheduler reads what there is and writes what it
// decides. It is safe for concurrent use.
type Cluster interface {
	// Follow calls f for every node, pod, namespace and board that there is, then once with
	// Synced, then for each change, one call at a time and in order. It returns
	// when ctx ends.
	Follow(ctx context.Context, f func(Event)) error
	// Pod returns one pod, or a StatusError.
	Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	// Bind places p on node, unless it was replaced, deleted or bound meanwhile.
	Bind(ctx context.Context, p *corev1.Pod, node string) error
	// Unschedulable sets p's condition PodScheduled to False, and the node on
	// which room is made for it; "": on none.
	Unschedulable(ctx context.Context, p *corev1.Pod, message, nominated string) error
	// Evict ends p with its grace period, for a pod of higher priority. It is no
	// error if p is gone.
	Evict(ctx context.Context, p *corev1.Pod) error
}

// Event is a change that Follow saw: a node, a pod, a namespace or a board as it
// is now, or as it was last when it is Deleted. They are shared and never changed.
type Event struct {
	Node      *corev1.Node
	Pod       *corev1.Pod
	Namespace *corev1.Namespace
	Hardware  *api.NodeHardware
	Deleted   bool
	Synced    bool // none of them: all that was there at the start has been told
}

// Recorder writes events for people. It does not block.
type Recorder interface {
	Event(about runtime.Object, kind, reason, message string)
}

// Config is what a Scheduler needs; Profile, Log and Now may be left out.
type Config struct {
	Cluster  Cluster
	Recorder Recorder
	Profile  Profile
	Log      *slog.Logger
	Now      func() time.Time // the time shown in explanations
}

// Scheduler places pods. All fields below are Run's goroutine's alone, but for
// the channels.
type Scheduler struct {
	Config
	snapshot *Snapshot
	queue    *queue
	binding  map[types.NamespacedName]*waiter // assumed, and not yet seen bound
	why      *explanations
	ended    map[types.NamespacedName]string // why, of pods that had to make room and are leaving
	synced   bool
	acting   int
	workers  sync.WaitGroup
	acted    chan outcome
	asked    chan question
}

// New returns a Scheduler, which does nothing before Run.
func New(c Config) *Scheduler {
	if c.Profile.Pick == nil {
		c.Profile = Default(rand.IntN)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Scheduler{
		Config:   c,
		snapshot: NewSnapshot(),
		queue:    newQueue(),
		binding:  make(map[types.NamespacedName]*waiter),
		why:      newExplanations(),
		ended:    make(map[types.NamespacedName]string),
		acted:    make(chan outcome),
		asked:    make(chan question),
	}
}

// Run schedules until ctx ends, and returns nil then; another error is
// Follow's. It is called once.
func (s *Scheduler) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer s.workers.Wait()
	defer cancel()
	events := make(chan Event)
	failed := make(chan error, 1)
	s.workers.Go(func() {
		failed <- s.Cluster.Follow(ctx, func(e Event) {
			select {
			case events <- e:
			case <-ctx.Done():
			}
		})
	})
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		s.work(ctx, events, timer)
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			if ctx.Err() != nil {
				return nil
			}
			return err
		case e := <-events:
			s.happened(e)
		case o := <-s.acted:
			s.finish(o)
		case q := <-s.asked:
			q.answer <- s.explain(q.pod)
		case <-timer.C:
		}
	}
}

// work tries the pods that may be tried now, as long as nothing else happens,
// and sets timer for the next.
func (s *Scheduler) work(ctx context.Context, events <-chan Event, timer *time.Timer) {
	for s.synced && s.acting < maxActing && ctx.Err() == nil {
		now := time.Now()
		w, at := s.queue.next(now)
		if w == nil {
			if !at.IsZero() {
				timer.Reset(at.Sub(now))
			}
			return
		}
		select { // what is known already is heard before the next decision
		case e := <-events:
			s.happened(e)
			continue
		default:
		}
		s.try(ctx, w, now)
	}
}
