package hw

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestSamplingAllocatesNothing is of the sensors that read kept files.
func TestSamplingAllocatesNothing(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"sys/bus/w1/devices/28-1/w1_slave":    "fb ff 4b 46 7f ff 0c 10 06 : crc=06 YES\nfb ff 4b 46 7f ff 0c 10 06 t=-312\n",
		"sys/bus/w1/devices/28-2/temperature": "20000\n",
		"proc/net/wireless":                   " wlan0: 0000   68.  -42.  -256        0      0      0      0   3851        0\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b := Open(Config{Root: root})
	defer b.Close()
	b.Sample(t.Context())
	for _, s := range b.sources {
		if s.name != "wifi" && s.name != string(OneWire) {
			continue
		}
		var out Snapshot
		s.sensor.put(&out)
		if n := testing.AllocsPerRun(100, func() {
			s.sensor.sample()
			s.sensor.put(&out)
		}); n > 0 {
			t.Errorf("%s: %v allocations a sample", s.name, n)
		}
	}
}

func TestThisMachinesDevices(t *testing.T) {
	b := Open(Config{})
	defer b.Close()
	s := b.Sample(t.Context())
	for _, d := range s.Devices {
		if _, err := d.Access.Get(); d.Path != "" && err != nil {
			t.Errorf("%+v: %v", d, err)
		}
	}
	t.Logf("%d devices, %d stations, %d probes; failing %v", len(s.Devices), len(s.WiFi), len(s.OneWire), s.Failing)
}

func TestChipInfo(t *testing.T) {
	var info [68]byte
	copy(info[:], "gpiochip4")
	copy(info[32:], "pinctrl-rp1")
	if got := chipInfoLabel(info[:]); got != "pinctrl-rp1" {
		t.Errorf("got %q", got)
	}
}

func FuzzW1(f *testing.F) {
	f.Add([]byte("fb ff 4b 46 7f ff 0c 10 06 : crc=06 YES\nfb ff 4b 46 7f ff 0c 10 06 t=-312\n"))
	f.Add([]byte("00 00 00 00 00 00 00 00 00 : crc=00 YES\n00 00 00 00 00 00 00 00 00 t=0\n"))
	f.Add([]byte("crc= YES\nt="))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := parseW1(data); err == nil && !strings.Contains(string(data), "YES") {
			t.Errorf("%q passes", data)
		}
	})
}

func FuzzCards(f *testing.F) {
	f.Add(" 0 [Headphones     ]: bcm2835_headpho - bcm2835 Headphones\n                      bcm2835 Headphones\n")
	f.Add("--- no soundcards ---\n")
	f.Fuzz(func(t *testing.T, data string) {
		for _, c := range parseCards(data) {
			if c.number < 0 || c.number > 255 {
				t.Errorf("card %d", c.number)
			}
		}
	})
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"HD Pro Webcam C920", "bad\xff\x1b[31m\u202e", strings.Repeat("ä", 100), "E:ID_V4L_CAPABILITIES=:capture:\n", "0x1e60"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := clean(s)
		if !utf8.ValidString(got) || len(got) > maxText || strings.ContainsFunc(got, unicode.IsControl) {
			t.Errorf("%q became %q", s, got)
		}
		if id := identifier(s); id != "" && len(id) != 4 {
			t.Errorf("%q became %q", s, id)
		}
		if value, ok := note(s, "ID_V4L_CAPABILITIES"); ok && !strings.Contains(s, value) {
			t.Errorf("%q has %q", s, value)
		}
		chipInfoLabel([]byte(s))
		takesPictures(s)
	})
}
