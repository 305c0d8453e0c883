package pod

import (
	"context"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Config is what the workers work with. All fields are required but Now
// (default time.Now), Uptime (default the machine's), Allocatable and Devices
// (default nothing) and Parallel (default 4).
type Config struct {
	Pods        Pods
	Containers  Containers
	Images      Images
	Network     Network
	Volumes     Volumes
	Probes      Probes
	Devices     Devices
	Source      Source
	Reporter    Reporter
	HostIP      func() string
	Resolver    func(hostNetwork bool) Resolver
	Allocatable func() corev1.ResourceList // what the node has for pods
	// Unenforced are the resources whose limits this node cannot hold; nil: none.
	Unenforced func() []string
	Dir        string // in memory, emptied by a reboot; for the pods' own files; a directory by pod uid is made in it
	Now        func() time.Time
	Uptime     func() time.Duration // of the machine, suspended or not
	ServerTime func() (now time.Time, known bool)
	Parallel   int // at most so many creations and starts at once
	Log        *slog.Logger
}

// Workers holds one worker for each pod of the node. A worker has a goroutine
// only while there is something to do.
type Workers struct {
	cfg  Config
	busy chan struct{} // a slot for each creation or start under way

	mending sync.Mutex // held while a damaged image is replaced

	mu      sync.Mutex // protects what follows
	ctx     context.Context
	workers map[string]*worker
	group   sync.WaitGroup
}

// New returns workers without pods; nothing happens before Run.
func New(cfg Config) *Workers {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Uptime == nil {
		cfg.Uptime = uptime
	}
	if cfg.ServerTime == nil {
		cfg.ServerTime = func() (time.Time, bool) { return time.Time{}, false }
	}
	if cfg.Allocatable == nil {
		cfg.Allocatable = func() corev1.ResourceList { return nil }
	}
	if cfg.Devices == nil {
		cfg.Devices = noDevices{}
	}
	if cfg.Unenforced == nil {
		cfg.Unenforced = func() []string { return nil }
	}
	if cfg.Parallel == 0 {
		cfg.Parallel = 4
	}
	return &Workers{cfg: cfg, busy: make(chan struct{}, cfg.Parallel), workers: map[string]*worker{}}
}

// Run lets the workers work until ctx ends, and waits for them. Containers run on.
func (s *Workers) Run(ctx context.Context) error {
	s.mu.Lock()
	s.ctx = ctx
	for _, w := range s.workers {
		s.start(w)
	}
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	for _, w := range s.workers {
		w.stopTimer()
	}
	s.mu.Unlock()
	s.group.Wait()
	return ctx.Err()
}

// Set says what is wanted of one pod, which must not be nil. The pod is not
// written to afterwards, and must not be by the caller.
func (s *Workers) Set(d Desired) {
	s.want(string(d.Pod.UID), d)
}

// Remove says that a pod is not wanted: whatever the node has of it goes.
func (s *Workers) Remove(uid string) {
	s.want(uid, Desired{})
}

func (s *Workers) want(uid string, d Desired) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.workers[uid]
	if w == nil {
		w = &worker{set: s, uid: uid}
		s.workers[uid] = w
	}
	w.want(d)
	s.start(w)
}

// Nudge makes the worker of a pod look again. It reports whether there is one.
func (s *Workers) Nudge(uid string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.workers[uid]
	if w != nil {
		s.start(w)
	}
	return w != nil
}

// NudgeAll makes every worker look again.
func (s *Workers) NudgeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.workers {
		s.start(w)
	}
}

// Refresh makes every worker look again, and make sure of its network and
// volumes: after the network process was away.
func (s *Workers) Refresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.workers {
		w.refresh()
		s.start(w)
	}
}

// UpdateVolumes makes every worker bring up to date what its pod's volumes follow.
func (s *Workers) UpdateVolumes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.workers {
		if w.outdate() {
			s.start(w)
		}
	}
}

// Known reports whether there is a worker for a pod.
func (s *Workers) Known(uid string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.workers[uid] != nil
}

// start gives w a turn: by its goroutine when it has one, else by a new one.
// The caller holds s.mu.
func (s *Workers) start(w *worker) {
	if s.ctx == nil || s.ctx.Err() != nil || !w.take() {
		return
	}
	s.group.Go(func() { w.run(s.ctx) })
}

// drop forgets a worker whose pod is gone and not wanted.
func (s *Workers) drop(w *worker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.workers[w.uid] == w {
		delete(s.workers, w.uid)
	}
}
