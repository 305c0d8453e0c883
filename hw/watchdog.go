package hw

// Watchdog is a timer that resets a board that hangs (Documentation/ABI/testing/sysfs-class-watchdog).
type Watchdog struct {
	Name       string `json:"name"`
	Identity   string `json:"identity"`
	State      string `json:"state"` // "active": somebody feeds it
	Timeout    int64  `json:"timeoutSeconds"`
	BootStatus int64  `json:"bootStatus"` // not 0: the last boot was its doing, or what else linux/watchdog.h names
}

type watchdogs struct {
	*reader
	out []Watchdog
}

func newWatchdogs(r *reader) sensor { return &watchdogs{reader: r} }

func (w *watchdogs) scan() {}

func (w *watchdogs) sample() {
	const class = "sys/class/watchdog"
	w.out = w.out[:0]
	for _, name := range w.names(class) {
		k := Watchdog{Name: name, Identity: w.text(class, name, "identity"), State: w.text(class, name, "state")}
		k.Timeout, _ = w.number(class, name, "timeout")
		k.BootStatus, _ = w.number(class, name, "bootstatus")
		w.out = append(w.out, k)
	}
}

func (w *watchdogs) put(s *Snapshot) { s.Watchdogs = append(s.Watchdogs[:0], w.out...) }
