package auth

import "time"

// Clock tells a time that is safe to judge validity by. It starts at the later
// of the wall clock and a floor that is known to be past, then runs by the
// monotonic clock: a board that boots in 1970 is not before its own software,
// and a step of the wall clock expires nothing.
//
// It never learns from the wall clock later, and stores nothing: one wrong
// reading in the future must not outlive the process.
type Clock struct {
	base, started time.Time
}

// NewClock returns a clock that is not before floor.
func NewClock(floor time.Time) *Clock {
	started := time.Now()
	base := started.Round(0) // without the monotonic reading
	if base.Before(floor) {
		base = floor
	}
	return &Clock{base: base, started: started}
}

// Now returns the time, in UTC.
func (c *Clock) Now() time.Time { return c.base.Add(time.Since(c.started)).UTC() }
