package pod

import (
	"time"

	"bramble.dev/bramble/nodeagent/container"
)

// Kubernetes' back-off of restarts and of image pulls (kubelet, MaxContainerBackOff).
const (
	firstDelay = 10 * time.Second
	maxDelay   = 5 * time.Minute
	// steadyAfter is how long a container must run for its next end to count
	// as the first.
	steadyAfter = 10 * time.Minute
	// freshFor is how long the failure itself is shown before the back-off.
	freshFor = 2 * time.Second
)

// Retry is a wait before something is tried again, and why.
type Retry struct {
	Delay   time.Duration // this wait's length; the next one doubles it
	Since   time.Time
	Until   time.Time
	Reason  string // of a failed step; empty: a container ended
	Message string
	For     string // the engine's id of the container whose end was counted last
}

// doubled returns the wait that follows delay.
func doubled(delay time.Duration) time.Duration {
	return min(max(firstDelay, 2*delay), maxDelay)
}

// afterFailure is the wait after a step that failed.
func afterFailure(previous Retry, f *Failure, now time.Time) Retry {
	delay := firstDelay
	if previous.Reason != "" {
		delay = doubled(previous.Delay)
	}
	return Retry{Delay: delay, Since: now, Until: now.Add(delay), Reason: f.Reason, Message: f.Error(), For: previous.For}
}

// afterExit is the wait before an ended container is started again: none the
// first time, then 10 s, doubling. Running for ten minutes starts the count anew:
// since the last wait was over, because the times of the start and the end are by
// the wall clock, which may have been set between them.
func afterExit(previous Retry, c container.State, now time.Time) Retry {
	if previous.For == c.ID {
		return previous
	}
	next := Retry{Since: now, Until: now, For: c.ID}
	if previous.For == "" || previous.Reason != "" || now.Sub(previous.Until) >= steadyAfter {
		return next
	}
	next.Delay = doubled(previous.Delay)
	next.Until = now.Add(next.Delay)
	return next
}

// Note counts what ended since the last look. The waits are counted from when
// the agent saw the end, by the monotonic clock, so that a step of the wall
// clock neither hurries nor stalls a restart.
func (o *Observed) Note(d Desired) {
	if d.Pod == nil {
		return
	}
	for _, m := range members(d.Pod) {
		spec := m.spec
		c, _ := o.latest(spec.Name)
		if c.Phase != container.Exited || lost(c) {
			continue
		}
		if o.Retries == nil {
			o.Retries = map[string]Retry{}
		}
		o.Retries[spec.Name] = afterExit(o.Retries[spec.Name], c, o.Now)
	}
}
