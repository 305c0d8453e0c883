package hw

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNL80211 asks this machine, whatever it has.
func TestNL80211(t *testing.T) {
	all, err := nl80211()
	if err != nil && !errors.Is(err, ErrAbsent) {
		t.Error(err)
	}
	t.Logf("%+v, %v", all, err)
}

// TestHeard is what nl80211 says in the place of the older interface.
func TestHeard(t *testing.T) {
	r := &reader{tree: Open(Config{Root: t.TempDir()}).tree}
	for _, test := range []struct {
		name   string
		heard  []heard
		err    error
		signal int64
		want   error
		ssid   string
	}{
		{name: "in a network", heard: []heard{{name: "wlan0", ssid: "Exa\x1bmple", signal: -52}}, signal: -52, ssid: "Example"},
		{name: "in none", heard: []heard{{name: "wlan0"}}, want: ErrAbsent},
		{name: "of another interface", heard: []heard{{name: "wlan1", signal: -52}}, want: ErrAbsent},
		{name: "nonsense", heard: []heard{{name: "wlan0", signal: -128}}, want: ErrImplausible},
		{name: "a driver that refuses, and one that does not", heard: []heard{{name: "wlan1", err: unix.EPERM}, {name: "wlan0", signal: -60}}, signal: -60},
		{name: "a driver that refuses", heard: []heard{{name: "wlan0", err: unix.EPERM}}, want: unix.EPERM},
		{name: "refused", err: unix.EPERM, want: unix.EPERM},
	} {
		w := &wifi{reader: r, ask: func() ([]heard, error) { return test.heard, test.err }, stations: []Station{{Interface: "wlan0"}}}
		w.sample()
		got := w.stations[0]
		if v, err := got.SignalDBm.Get(); !errors.Is(err, test.want) || err == nil && v != test.signal || got.SSID != test.ssid {
			t.Errorf("%s: %+v", test.name, got)
		}
	}
}

func FuzzWireless(f *testing.F) {
	f.Add([]byte("wlp5s0: 0000   68.  -42.  -256        0      0      0      0   3851        0\n"), "wlp5s0")
	f.Add([]byte("wlan0:\n"), "wlan0")
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		if h, err := parseWireless(data, name); err != nil && h != (hearing{}) {
			t.Errorf("%+v and %v", h, err)
		}
	})
}
