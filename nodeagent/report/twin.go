package report

import (
	"fmt"
	"time"
)

// twin tells whether another board reports as this node: two cards were made from one
// that had joined, and each board has the other's connections closed and its pods run
// twice. The kernel's boot id tells boards apart. A server whose database was set back
// may show another boot than ours once; it has ours again when we have reported.
type twin struct {
	own   string // the boot id that we reported; "": none yet
	other string
	seen  int       // how often other stood in our place
	last  time.Time // of that
}

const (
	// twinSure is how often makes sure, and twinLasts how long that is held.
	twinSure  = 2
	twinLasts = 10 * time.Minute
)

// note takes note of the boot id that the server has, and says whether it has just
// made sure.
func (t *twin) note(id string) (sure bool) {
	if t.own == "" || id == "" || id == t.own {
		return false
	}
	if !t.suspected() {
		t.seen = 0
	}
	t.other, t.last = id, time.Now()
	t.seen++
	return t.seen == twinSure
}

func (t *twin) suspected() bool { return t.seen > 0 && time.Since(t.last) < twinLasts }

// complaint is what a person is to do; "" as long as we are not sure.
func (t *twin) complaint() string {
	if t.seen < twinSure || !t.suspected() {
		return ""
	}
	return fmt.Sprintf("another board reports as this node (its boot id is %s, this one's %s): was its card copied? "+
		"On one of the two, stop bramble-agent, empty its state directory and join under a name of its own", t.other, t.own)
}
