package hw_test

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"bramble.dev/bramble/hw"
)

// data is where the files of real boards are.
func data(path ...string) string {
	folder := os.Getenv("HW_DATA")
	if folder == "" {
		folder = "testdata"
	}
	return filepath.Join(append([]string{folder}, path...)...)
}

// trees are how the folders of data lie below a root.
var trees = map[string]map[string]string{
	"node_exporter": {
		"node_exporter-fixtures/pressure": "proc/pressure", "node_exporter-fixtures/thermal": "sys/class/thermal",
		"node_exporter-fixtures/hwmon": "sys/class/hwmon",
	},
	"procfs": {
		"procfs-fixtures/proc": "proc", "procfs-fixtures/thermal": "sys/class/thermal",
		"procfs-fixtures/power_supply": "sys/class/power_supply", "procfs-fixtures/watchdog": "sys/class/watchdog",
	},
	"procfs battery":   {"procfs-fixtures/power_supply_BAT0": "sys/class/power_supply/BAT0"},
	"telegraf general": {"telegraf-temp/general/sys": "sys"},
	"telegraf device":  {"telegraf-temp/with_device_tag/sys": "sys"},
	"telegraf name":    {"telegraf-temp/with_name/sys": "sys"},
}

// TestRealTrees reads files of real boards: all of them without an error, and each
// tree something.
func TestRealTrees(t *testing.T) {
	for name, folders := range trees {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for from, to := range folders {
				link(t, data(from), filepath.Join(root, to))
			}
			readAll(t, root)
		})
	}
	files := glob(t, data("cpuinfo", "*"), data("cpuinfo", "gopsutil", "*"))
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.IsDir() {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			root := t.TempDir()
			link(t, file, filepath.Join(root, "proc/cpuinfo"))
			id := readAll(t, root).Identity
			if id.CPUs == 0 || id.Processor.Arch == "" || len(id.Processor.Cores) == 0 || len(id.Processor.Features) == 0 {
				t.Errorf("not understood: %+v", id)
			}
		})
	}
	t.Run("qemu", func(t *testing.T) {
		root := t.TempDir()
		link(t, data("qemu-raspi3b", "proc"), filepath.Join(root, "proc"))
		link(t, data("qemu-raspi3b", "sys", "devices"), filepath.Join(root, "sys/devices"))
		links(t, data("qemu-raspi3b", "links.txt"), root)
		s := readAll(t, root)
		if s.Identity.Model != "Raspberry Pi 3 Model B" || s.Identity.SoC != "BCM2837" || !s.Thermal.SoC.OK() {
			t.Errorf("got %+v and %+v", s.Identity, s.Thermal)
		}
	})
	t.Run("ghw", func(t *testing.T) {
		root := t.TempDir()
		for _, archive := range glob(t, data("ghw-arm64", "*.tar.gz")) {
			unpack(t, archive, root)
		}
		if s := readAll(t, root); s.Identity.Processor.Arch != "arm64" {
			t.Errorf("got %+v", s.Identity)
		}
	})
}

// readAll reads a tree, in which nothing may fail but what is known to be a file that
// no kernel has written.
func readAll(t *testing.T, root string) hw.Snapshot {
	t.Helper()
	board := hw.Open(hw.Config{Root: root})
	defer board.Close()
	s := board.Sample(t.Context())
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range regexp.MustCompile(`\{[^{}]*"error":[^{}]*\}`).FindAllString(string(text), -1) {
		t.Errorf("cannot read: %s", group)
	}
	if len(s.Failing) > 0 {
		t.Errorf("late: %v", s.Failing)
	}
	return s
}

// seriesLine is a line of sbc-bench's log: time, clocks, load and temperature.
var seriesLine = regexp.MustCompile(`^(\d\d:\d\d:\d\d): .*?(-?\d+\.\d)°C`)

// TestLogs has every temperature of real boards under load believed: what drops
// glitches drops nothing else.
func TestLogs(t *testing.T) {
	logs := glob(t, data("sbc-bench", "*.txt"))
	if len(logs) < 19 {
		t.Fatalf("%d logs", len(logs))
	}
	measured := 0 // of four boards the log has clocks alone
	for _, file := range logs {
		t.Run(filepath.Base(file), func(t *testing.T) {
			root := t.TempDir()
			dir := filepath.Join(root, "sys/class/thermal/thermal_zone0")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(dir, "type"), "cpu-thermal")
			var now time.Duration
			board := hw.Open(hw.Config{Root: root, Now: func() time.Duration { return now }})
			defer board.Close()
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Close() }()
			count, last := 0, time.Time{}
			for lines := bufio.NewScanner(f); lines.Scan(); {
				parts := seriesLine.FindStringSubmatch(lines.Text())
				if parts == nil {
					continue
				}
				at, err := time.Parse(time.TimeOnly, parts[1])
				celsius, err2 := strconv.ParseFloat(parts[2], 64)
				if err != nil || err2 != nil {
					t.Fatalf("cannot read %q", lines.Text())
				}
				if count > 0 && at.After(last) {
					now += at.Sub(last)
				} else {
					now += time.Minute // another series
				}
				last = at
				put(t, filepath.Join(dir, "temp"), strconv.Itoa(int(celsius*1000)))
				if got, err := board.Sample(t.Context()).Thermal.SoC.Get(); err != nil || got != int64(celsius*1000) {
					t.Errorf("%s: %v, %v", parts[0], got, err)
				}
				count++
			}
			if count > 5 {
				measured++
			}
		})
	}
	if measured < 15 {
		t.Errorf("temperatures of %d boards", measured)
	}
}

// TestThrottleSamples reads answers of real boards.
func TestThrottleSamples(t *testing.T) {
	text, err := os.ReadFile(data("throttle-samples.txt"))
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for line := range strings.Lines(string(text)) {
		value, about, found := strings.Cut(strings.TrimSpace(line), "\t")
		if !found {
			continue
		}
		bits, err := hw.ParseThrottled("throttled=" + value)
		if err != nil {
			t.Errorf("%s: %v", value, err)
		}
		if now := strings.Contains(about, " now "); now != bits.UnderVoltage() {
			t.Errorf("%s (%s): under-voltage %v", value, about, bits.UnderVoltage())
		}
		count++
	}
	if count < 4 {
		t.Errorf("%d samples", count)
	}
}

func glob(t *testing.T, patterns ...string) (all []string) {
	t.Helper()
	for _, p := range patterns {
		files, err := filepath.Glob(p)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, files...)
	}
	return all
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// link makes a symbolic link to what is in data.
func link(t *testing.T, from, to string) {
	t.Helper()
	from, err := filepath.Abs(from)
	if err == nil {
		_, err = os.Stat(from)
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.Symlink(from, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// links makes those that a list has of the kernel's classes: "/sys/class/x -> ../y".
func links(t *testing.T, list, root string) {
	t.Helper()
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, to, found := strings.Cut(strings.TrimSpace(line), " -> ")
		if !found || !strings.HasPrefix(name, "/sys/class/") {
			continue
		}
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func unpack(t *testing.T, archive, root string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	plain, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(plain); ; {
		h, err := files.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(root, filepath.Join("/", h.Name))
		if h.FileInfo().IsDir() {
			err = os.MkdirAll(to, 0o755)
		} else if err = os.MkdirAll(filepath.Dir(to), 0o755); err == nil && h.FileInfo().Mode()&fs.ModeSymlink != 0 {
			err = os.Symlink(h.Linkname, to)
		} else if err == nil {
			var content []byte
			if content, err = io.ReadAll(files); err == nil {
				err = os.WriteFile(to, content, 0o644)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
