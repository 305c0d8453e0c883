package hw

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Config says where a Board reads. The zero value is this machine.
type Config struct {
	// Root has proc, sys and dev below it; "" is "/". Of another root the firmware's
	// answers are files: vcgencmd/get_throttled, vcgencmd/measure_clock_arm.
	Root string
	// Pread reads of an open file at an offset; path is below Root. nil: pread(2).
	// Tests have it fail as drivers do.
	Pread func(path string, fd int, p []byte, off int64) (int, error)
	// Command asks the firmware of a Raspberry Pi, as vcgencmd does. nil: its mailbox.
	// It returns ErrAbsent where there is none.
	Command func(command string) (string, error)
	// Rescan is how often devices are looked for below another root, of which no kernel
	// tells; 0: never.
	Rescan time.Duration
	// Now is a monotonic clock; nil: the time since Open.
	Now func() time.Duration
}

// How often a sensor is read, and when it has failed to answer. A fast one costs a
// read or two of kept files; a slow one does not change, or asks a device.
const (
	Fast   = 5 * time.Second
	Medium = 30 * time.Second
	Slow   = time.Hour
	Once   = 0 // when the board is opened, and when devices have come or gone

	deadline     = 500 * time.Millisecond
	firmwareTime = 1500 * time.Millisecond // the kernel gives the firmware a second
	maxMisses    = 3                       // then it is asked
	restAfter    = time.Minute             // so seldom
)

// Board reads a board's sensors. Open one for each board. It is safe for concurrent
// use.
type Board struct {
	tree    *tree
	command func(string) (string, error)
	rescan  time.Duration
	turn    sync.Mutex // held while sensors are read
	work    *worker    // protected by turn

	mu      sync.Mutex // protects all below
	sources []*source
	latest  Snapshot
	changed chan struct{} // closed when there is something new, and then made anew
}

// sensor reads one part of a board. Each has a file of its own, and every one is of
// this shape. Its methods are called by one goroutine at a time.
type sensor interface {
	// scan finds the files that sample reads, and forgets those that it had.
	scan()
	// sample reads them into the sensor's own memory.
	sample()
	// put copies what sample read into s. It does not block.
	put(s *Snapshot)
}

// source is a sensor and how it fares.
type source struct {
	name     string
	sensor   sensor
	reader   *reader
	period   time.Duration
	deadline time.Duration // 0: 500 ms

	// Protected by Board.mu.
	scanned bool          // its files are known
	busy    bool          // it is being read, perhaps in vain
	due     time.Duration // when it is to be read again
	misses  int           // in a row
	tookMax time.Duration
}

// Open returns a Board that has read nothing yet.
func Open(c Config) *Board {
	t := &tree{root: c.Root, pread: c.Pread, now: c.Now}
	if began := time.Now(); t.now == nil {
		t.now = func() time.Duration { return time.Since(began) }
	}
	if t.root == "" {
		t.root = "/"
	}
	if t.pread == nil {
		t.pread = pread
	}
	b := &Board{tree: t, command: c.Command, rescan: c.Rescan, changed: make(chan struct{})}
	if b.command == nil {
		b.command = mailbox(t)
	}
	b.sources = b.newSources()
	return b
}

// Close closes the files that the sensors keep open, but those of one that hangs.
// Nothing may be called after it.
func (b *Board) Close() {
	b.turn.Lock()
	defer b.turn.Unlock()
	if b.work != nil {
		close(b.work.todo)
		b.work = nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.sources {
		if !s.busy {
			s.reader.close()
		}
	}
}

// Run reads every sensor in its time until ctx ends, and returns nil then. It has them
// look for their files again when devices come or go.
func (b *Board) Run(ctx context.Context) error {
	rescan, ended := b.hotplug(ctx)
	defer ended()
	b.readUntil(ctx, rescan)
	return nil
}

func (b *Board) readUntil(ctx context.Context, rescan <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-rescan:
			b.Rescan()
		case <-timer.C:
		}
		next := b.readDue(ctx, b.tree.now())
		timer.Reset(max(next-b.tree.now(), 0))
	}
}

// Sample reads every sensor once, whatever its time, and returns what they say. It
// takes as long as the slowest, at most some seconds.
func (b *Board) Sample(ctx context.Context) Snapshot {
	b.mu.Lock()
	for _, s := range b.sources {
		s.due = 0
	}
	b.mu.Unlock()
	b.readDue(ctx, b.tree.now())
	return b.Snapshot()
}

// Rescan has every sensor look for its files again: devices have come or gone.
func (b *Board) Rescan() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.sources {
		s.scanned, s.due = false, 0
	}
}

// Snapshot returns what was read last. It is the caller's.
func (b *Board) Snapshot() Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.latest.clone()
	s.At = b.tree.now()
	for _, source := range b.sources {
		if source.misses > 0 {
			s.Failing = append(s.Failing, Failing{Sensor: source.name, Misses: source.misses, Err: ErrLate})
		}
	}
	return s
}

// Changed returns a channel that is closed when something has been read again.
func (b *Board) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// readDue reads what is due, one sensor after another, and returns when the next is.
func (b *Board) readDue(ctx context.Context, now time.Duration) (next time.Duration) {
	b.turn.Lock()
	defer b.turn.Unlock()
	for _, s := range b.sources {
		if ctx.Err() == nil && b.begin(s, now) {
			b.read(s)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.latest.Complete = b.latest.Complete || ctx.Err() == nil
	close(b.changed)
	b.changed = make(chan struct{})
	next = now + Slow
	for _, s := range b.sources {
		if !s.busy && s.due < next {
			next = s.due
		}
	}
	return next
}

// begin says whether s is to be read now, and notes that it is.
func (b *Board) begin(s *source, now time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.busy || now < s.due {
		return false
	}
	s.busy = true
	s.due = now + s.period
	if s.period == Once {
		s.due = 1<<63 - 1
	}
	return true
}

// worker is the goroutine that reads. One that hangs in the kernel, which nothing
// can end, is left behind with its sensor, and the next one goes on.
type worker struct {
	todo chan *source
	done chan struct{}
	late *time.Timer
}

// read has s read in time, or notes that it was not.
func (b *Board) read(s *source) {
	if b.work == nil {
		b.work = &worker{todo: make(chan *source), done: make(chan struct{}, 1), late: time.NewTimer(time.Hour)}
		go b.run(b.work) // ends when it was late, or when the board is closed
	}
	w := b.work
	w.late.Reset(s.patience())
	w.todo <- s
	select {
	case <-w.done:
	case <-w.late.C:
		close(w.todo) // it ends when its read does
		b.work = nil
		b.mu.Lock()
		s.misses++
		if s.misses >= maxMisses {
			s.due = b.tree.now() + restAfter
		}
		b.mu.Unlock()
	}
}

func (b *Board) run(w *worker) {
	for s := range w.todo {
		b.mu.Lock()
		scanned := s.scanned
		s.scanned = true
		b.mu.Unlock()
		began := b.tree.now()
		if !scanned {
			s.reader.close()
			s.sensor.scan()
		}
		s.sensor.sample()
		took := b.tree.now() - began
		b.mu.Lock()
		s.sensor.put(&b.latest)
		s.busy = false
		if took <= s.patience() {
			s.misses = 0
		}
		s.tookMax = max(s.tookMax, took)
		b.mu.Unlock()
		w.done <- struct{}{}
	}
}

func (s *source) patience() time.Duration {
	if s.deadline == 0 {
		return deadline
	}
	return s.deadline
}

// newSource makes the reader that a sensor has of its own.
func (b *Board) newSource(name string, period time.Duration, with func(*reader) sensor) *source {
	r := &reader{tree: b.tree}
	return &source{name: name, period: period, reader: r, sensor: with(r)}
}

// within sets how long a sensor may take that asks a device.
func (s *source) within(d time.Duration) *source {
	s.deadline = d
	return s
}

// newSources returns all sensors, the fast ones first.
func (b *Board) newSources() []*source {
	firmware := func(with func(*reader, func(string) (string, error)) sensor) func(*reader) sensor {
		return func(r *reader) sensor { return with(r, b.command) }
	}
	sources := []*source{
		b.newSource("thermal", Fast, newThermal),
		b.newSource("throttle", Fast, firmware(newThrottle)).within(firmwareTime),
		b.newSource("cpufreq", Fast, newFrequencies),
		b.newSource("pressure", Fast, newPressure),
		b.newSource("memory", Fast, newMemory),
		b.newSource("processor", Fast, newProcessor),
		b.newSource("links", Fast, newLinks),
		b.newSource("supplies", Medium, newSupplies),
		b.newSource("hwmon", Medium, newHwmon),
		b.newSource("firmware", Medium, firmware(newFirmwareMeter)).within(3 * firmwareTime),
		b.newSource("mounts", Medium, newMounts).within(2 * time.Second),
		b.newSource("disks", Medium, newDisks),
		b.newSource("clock", Medium, newClock),
		b.newSource("identity", Once, newIdentity),
		b.newSource("cgroups", Slow, newCgroups),
		b.newSource("watchdogs", Slow, newWatchdogs),
		b.newSource("wifi", Medium, newWiFi),
		b.newOneWireSource(),
	}
	sources = append(sources, b.deviceSources()...)
	return slices.Clip(sources)
}
