package hw

import (
	"bytes"
	"slices"
)

// Station is an interface to a wireless network, and how well it hears.
type Station struct {
	Interface   string         `json:"interface"`
	SSID        string         `json:"ssid,omitempty"` // ""; it is in no network, or that is not told
	SignalDBm   Reading[int64] `json:"signalDBm"`      // -30 is near, -85 is hardly heard
	NoiseDBm    Reading[int64] `json:"noiseDBm"`       // few drivers tell
	LinkQuality Reading[int64] `json:"linkQuality"`    // of the driver's own scale, mostly of 70
}

type wifi struct {
	*reader
	ask      func() ([]heard, error) // nl80211; nil: of another root
	proc     *file                   // of kernels with the older interface
	stations []Station
}

// heard is what nl80211 says of an interface.
type heard struct {
	name, ssid string
	signal     int64 // dBm; 0: not told
	err        error // why it is not
}

const wireless = "proc/net/wireless"

func newWiFi(r *reader) sensor {
	w := &wifi{reader: r}
	if !r.recorded() {
		w.ask = nl80211
	}
	return w
}

func (w *wifi) scan() {
	w.stations, w.proc = nil, w.open(wireless)
	var names []string
	for _, name := range w.names(netClass) {
		if w.isWireless(name) {
			names = append(names, name)
		}
	}
	data, _ := w.bytes(w.proc)
	for len(data) > 0 {
		var line []byte
		line, data = nextLine(data)
		if name, _, ok := bytes.Cut(trim(line), []byte{':'}); ok && !slices.Contains(names, string(name)) {
			names = append(names, string(name))
		}
	}
	for _, name := range names {
		w.stations = append(w.stations, Station{Interface: clean(name)})
	}
}

func (w *wifi) sample() {
	if len(w.stations) == 0 {
		return
	}
	data, err := w.bytes(w.proc)
	for i := range w.stations {
		s := &w.stations[i]
		h, why := hearing{}, err
		if err == nil {
			h, why = parseWireless(data, s.Interface)
		}
		s.SSID = ""
		s.SignalDBm = w.decibels(h.signal, why)
		s.NoiseDBm = w.decibels(h.noise, why)
		s.LinkQuality = read(w.reader, wireless, h.quality, why)
	}
	if w.ask == nil {
		return
	}
	all, err := w.ask()
	for i := range w.stations {
		s := &w.stations[i]
		h := heard{err: err}
		if n := slices.IndexFunc(all, func(h heard) bool { return h.name == s.Interface }); n >= 0 {
			h = all[n]
		}
		s.SSID = clean(h.ssid)
		switch {
		case h.signal < 0:
			s.SignalDBm = read(w.reader, "nl80211", h.signal, plausibleDBm(h.signal))
		case h.err != nil && !s.SignalDBm.OK():
			s.SignalDBm = read(w.reader, "nl80211", int64(0), h.err)
		}
	}
}

func (w *wifi) put(s *Snapshot) { s.WiFi = append(s.WiFi[:0], w.stations...) }

// decibels is a Reading of /proc/net/wireless. What is not below zero is not in dBm
// (include/uapi/linux/wireless.h, IW_QUAL_DBM), and -256 is a driver's "unknown".
func (w *wifi) decibels(value int64, err error) Reading[int64] {
	switch {
	case err != nil:
	case value >= 0 || value == -256:
		err = ErrAbsent
	default:
		err = plausibleDBm(value)
	}
	return read(w.reader, wireless, value, err)
}

func plausibleDBm(value int64) error {
	if value < -120 || value >= 0 {
		return ErrImplausible
	}
	return nil
}

// hearing is a line of /proc/net/wireless.
type hearing struct{ quality, signal, noise int64 }

// parseWireless finds the line of an interface; ErrAbsent if there is none.
//
//	face | tus | link level noise |  nwid  crypt   frag  retry   misc | beacon
//	wlan0: 0000   68.  -42.  -256        0      0      0      0   3851        0
//
// A dot says that the value is of now.
func parseWireless(data []byte, name string) (h hearing, err error) {
	for len(data) > 0 {
		var line []byte
		line, data = nextLine(data)
		face, rest, ok := bytes.Cut(trim(line), []byte{':'})
		if !ok || string(face) != name {
			continue
		}
		_, rest = field(rest)
		for _, to := range []*int64{&h.quality, &h.signal, &h.noise} {
			var word []byte
			word, rest = field(rest)
			if *to, err = parseInt(bytes.TrimSuffix(word, []byte{'.'})); err != nil {
				return hearing{}, err
			}
		}
		return h, nil
	}
	return hearing{}, ErrAbsent
}
