package hw_test

import (
	"errors"
	"testing"

	"bramble.dev/bramble/hw"
)

// TestWiFi reads what the kernel's older interface says: the first line is of
// netdata/netdata, issue 6333, the others are of what drivers do.
func TestWiFi(t *testing.T) {
	const head = `Inter-| sta-|   Quality        |   Discarded packets               | Missed | WE
 face | tus | link level noise |  nwid  crypt   frag  retry   misc | beacon | 22
`
	root := newTree(t, map[string]string{
		"proc/net/wireless": head +
			"wlp5s0: 0000   68.  -42.  -256        0      0      0      0   3851        0\n" +
			" wlan1: 0000    0     0     0        0      0      0      0      0        0\n" + // in no network
			" wlan2: 0000  100    55    -91.       0      0      0      0      0        0\n" + // of 100, not in dBm
			" wlan3: 0000   30.  -200.  -90.       0      0      0      0      0        0\n" +
			" wlan4: 0000   3x\n",
		"sys/class/net/wlan9/phy80211/index": "0\n", "sys/class/net/eth0/mtu": "1500\n",
	})
	board := hw.Open(hw.Config{Root: root})
	defer board.Close()
	got := map[string]hw.Station{}
	for _, s := range board.Sample(t.Context()).WiFi {
		got[s.Interface] = s
	}
	if len(got) != 6 {
		t.Errorf("%d stations: %v", len(got), got)
	}
	for _, test := range []struct {
		name                            string
		quality, signal, noise          int64
		qualityErr, signalErr, noiseErr error
	}{
		{name: "wlp5s0", quality: 68, signal: -42, noiseErr: hw.ErrAbsent},
		{name: "wlan1", signalErr: hw.ErrAbsent, noiseErr: hw.ErrAbsent},
		{name: "wlan2", quality: 100, signalErr: hw.ErrAbsent, noise: -91},
		{name: "wlan3", quality: 30, signalErr: hw.ErrImplausible, noise: -90},
		{name: "wlan4", qualityErr: hw.ErrFormat, signalErr: hw.ErrFormat, noiseErr: hw.ErrFormat},
		{name: "wlan9", qualityErr: hw.ErrAbsent, signalErr: hw.ErrAbsent, noiseErr: hw.ErrAbsent},
	} {
		s := got[test.name]
		for _, c := range []struct {
			what string
			got  hw.Reading[int64]
			want int64
			err  error
		}{
			{"quality", s.LinkQuality, test.quality, test.qualityErr},
			{"signal", s.SignalDBm, test.signal, test.signalErr},
			{"noise", s.NoiseDBm, test.noise, test.noiseErr},
		} {
			if v, err := c.got.Get(); !errors.Is(err, c.err) || err == nil && v != c.want {
				t.Errorf("%s %s: %d, %v; want %d, %v", test.name, c.what, v, err, c.want, c.err)
			}
		}
	}
}
