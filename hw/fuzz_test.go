package hw

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The parsers must not panic, and what they return must be what their comments say.

func FuzzNumbers(f *testing.F) {
	for _, s := range []string{"0", "-650788984\n", " 47236", "0x50005", "1.3188", "-0.5", "<unknown>", "99999999999999999999", "0.68", "."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		data := []byte(s)
		n, err := parseInt(data)
		want, wantErr := strconv.ParseInt(string(trim(data)), 10, 64)
		if err == nil && (wantErr != nil || n != want) {
			t.Errorf("parseInt(%q) = %d, strconv has %d, %v", s, n, want, wantErr)
		}
		if _, err := parseFixed(data, 6); err == nil {
			if _, wantErr := strconv.ParseFloat(string(trim(data)), 64); wantErr != nil && string(trim(data)) != "-" {
				t.Errorf("parseFixed(%q) is no number: %v", s, wantErr)
			}
		}
		_, _ = parseHex(data)
	})
}

func FuzzFirmware(f *testing.F) {
	for _, s := range []string{"throttled=0x50005", "50005\n", `error=1 error_msg="Command not registered"`, "frequency(48)=657000000", "volt=1.3188V", " VDD_CORE_A current(7)=1.54489000A\n VDD_CORE_V volt(15)=0.88725180V"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		_, _ = ParseThrottled(s)
		_, _ = ParseClock(s)
		_, _ = ParseVolts(s)
		if p, err := ParsePMIC(s); err == nil && (p.Count < 1 || p.Count > maxRails) {
			t.Errorf("%d rails", p.Count)
		}
		message := gencmd(s)
		copy(message[20:], s)
		_, _ = gencmdResult(message)
	})
}

func FuzzCPUInfo(f *testing.F) {
	files, err := filepath.Glob("testdata/cpuinfo/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		info := ParseCPUInfo(data)
		count := 0
		for _, c := range info.Cores {
			count += c.Count
		}
		if count != info.Count {
			t.Errorf("%d cores, by kind %d", info.Count, count)
		}
		ParseRevision(info.Revision)
	})
}

func FuzzProc(f *testing.F) {
	for _, s := range []string{
		"some avg10=0.05 avg60=0.04 avg300=0.00 total=95654990\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0",
		"cpu  1 2 3 4 5 6 7 8 9 10\n", "MemTotal: 100 kB\nMemAvailable: 50 kB",
		"29 1 179:2 / / rw,noatime shared:1 - ext4 /dev/mmcblk0p2 rw,errors=remount-ro",
		" 179 0 mmcblk0 1 2 3 4 5 6 7 8 9 10 11", "memory 0 39 0", "0::/user.slice/user-1000.slice/user@1000.service/app.slice",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, err := parsePressure(data); err == nil && (s.Some.Avg10 < -1e12 || s.Some.TotalMicros < -1<<60) {
			t.Errorf("%+v", s)
		}
		if busy, all, err := parseStat(data); err == nil && busy > all {
			t.Errorf("%d of %d busy", busy, all)
		}
		_, _ = numberAfter(data, "MemTotal:")
		_, _, _ = diskStats(data, nil, "mmcblk0")
		if info, ok := parseMount(data); ok && len(info.path) == 0 {
			t.Errorf("no path: %+v", info)
		}
		_, _ = memoryController(string(data))
		if strings.Contains(UserCgroup(string(data)), "\n") {
			t.Errorf("more than a line: %q", UserCgroup(string(data)))
		}
	})
}

func FuzzCard(f *testing.F) {
	f.Add("0x01 0x0B", "01", "11/2015", "0x5048")
	f.Fuzz(func(t *testing.T, life, preEOL, date, oem string) {
		if w, err := ParseWear(life, preEOL); err == nil && (w.UsedPercent < 10 || w.UsedPercent > 101) {
			t.Errorf("%+v", w)
		}
		if made := cardDate(date); made != "" && len(made) != len("2015-11") {
			t.Errorf("made %q", made)
		}
		_ = oemName(oem)
	})
}
