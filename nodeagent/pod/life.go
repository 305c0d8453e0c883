package pod

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// life is what the agent notes of a pod in the pod's directory, which is in
// memory and so begins anew with the machine.
type life struct {
	Sandbox   string        `json:"sandbox"`
	StartTime time.Time     `json:"startTime"` // by the node's clock, which may be wrong
	Spent     time.Duration `json:"spent"`     // that the pod was active before, as far as the clock tells
	Uptime    time.Duration `json:"uptime"`    // of the machine, at Spent
}

// begin reads the pod's life, or begins it, and sets by it since when the pod
// is active: within one run of the machine no step of the wall clock changes that.
func (w *worker) begin(d Desired) {
	m, path := &w.memory, filepath.Join(w.dir(), "life.json")
	var l life
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	if err != nil || l.Sandbox == "" {
		l = w.newLife(d.Pod)
		if !d.leaving() {
			w.writeLife(path, l)
		}
	}
	m.Sandbox, m.StartTime = l.Sandbox, l.StartTime
	if d.Pod.Status.StartTime != nil {
		m.StartTime = d.Pod.Status.StartTime.Time
	}
	m.ActiveSince = m.Now.Add(-l.Spent - max(0, w.set.cfg.Uptime()-l.Uptime))
	m.Hooked = w.marks()
}

func (w *worker) newLife(pod *corev1.Pod) life {
	id := make([]byte, 8)
	_, _ = rand.Read(id) // it does not fail (crypto/rand)
	l := life{Sandbox: hex.EncodeToString(id), StartTime: w.memory.Now.Round(0), Uptime: w.set.cfg.Uptime()}
	if pod.Status.StartTime != nil {
		l.StartTime = pod.Status.StartTime.Time
		l.Spent = spent(pod, w.wallClock())
	}
	return l
}

// spent is for how long a pod was active before the machine's start. No pod began
// before it was made, whatever the node's clock was when it did.
func spent(pod *corev1.Pod, now time.Time) time.Duration {
	began := pod.Status.StartTime.Time
	if made := pod.CreationTimestamp.Time; began.Before(made) {
		began = made
	}
	return max(0, now.Sub(began))
}

// wallClock is the server's time where that is known: the node's may be wrong.
func (w *worker) wallClock() time.Time {
	if now, known := w.set.cfg.ServerTime(); known {
		return now
	}
	return w.memory.Now
}

func (w *worker) writeLife(path string, l life) {
	data, err := json.Marshal(l)
	if err == nil {
		err = os.MkdirAll(w.dir(), 0o700)
	}
	if err == nil {
		err = os.WriteFile(path+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil { // its init containers would run again after a restart of the agent
		w.set.cfg.Log.Error("cannot note that a pod began", "pod", w.uid, "err", err)
	}
}

// uptime is the machine's, with the time that it was suspended.
func uptime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic(fmt.Sprintf("cannot read the machine's uptime: %v", err)) // every Linux has it
	}
	return time.Duration(now.Nano())
}
