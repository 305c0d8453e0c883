package hw

import (
	"golang.org/x/sys/unix"
)

// Clock is how far the board's time can be believed.
type Clock struct {
	Synchronized Reading[bool]  `json:"synchronized"`   // as the kernel has been told by who keeps it (adjtimex(2))
	MaxError     Reading[int64] `json:"maxErrorMicros"` // by its own account, in µs
	RTC          string         `json:"rtc,omitempty"`  // the driver of a clock that runs without power; "" if there is none
	Uptime       Reading[int64] `json:"uptimeSeconds"`  // since the boot
}

type clock struct {
	*reader
	uptime *file
	out    Clock
}

func newClock(r *reader) sensor { return &clock{reader: r} }

func (c *clock) scan() {
	const class = "sys/class/rtc"
	c.uptime, c.out.RTC = c.open("proc/uptime"), ""
	for _, name := range c.names(class) {
		if c.out.RTC = c.text(class, name, "name"); c.out.RTC != "" {
			break
		}
	}
}

func (c *clock) sample() {
	var t unix.Timex
	var state int
	err := ErrAbsent
	if !c.recorded() {
		state, err = unix.Adjtimex(&t)
	}
	synchronized := err == nil && state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0
	c.out.Synchronized = read(c.reader, "adjtimex", synchronized, err)
	c.out.MaxError = read(c.reader, "adjtimex", int64(t.Maxerror), err)
	data, err := c.bytes(c.uptime)
	var seconds int64
	if err == nil {
		word, _ := field(data)
		seconds, err = parseFixed(word, 0)
	}
	c.out.Uptime = read(c.reader, "proc/uptime", seconds, err)
}

func (c *clock) put(s *Snapshot) { s.Clock = c.out }
