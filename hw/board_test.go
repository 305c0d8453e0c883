package hw_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"bramble.dev/bramble/hw"
)

const (
	zone0Temp = "sys/class/thermal/thermal_zone0/temp"
	meminfo   = "proc/meminfo"
)

// newTree writes files below a new root; "-> x" is a symbolic link.
func newTree(t testing.TB, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range files {
		file := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		to, link := strings.CutPrefix(text, "-> ")
		err := error(nil)
		if link {
			err = os.Symlink(to, file)
		} else {
			err = os.WriteFile(file, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func smallBoard(t testing.TB) string {
	return newTree(t, map[string]string{
		"sys/class/thermal/thermal_zone0/type": "cpu-thermal\n", zone0Temp: "47000\n",
		meminfo: "MemTotal: 100 kB\nMemAvailable: 50 kB\n",
	})
}

// hanging is pread(2), but reads of one file wait while it is stuck.
type hanging struct {
	path  string
	mu    sync.Mutex
	stuck chan struct{} // nil: it answers
	calls atomic.Int32
}

func (h *hanging) pread(path string, fd int, p []byte, off int64) (int, error) {
	if path == h.path {
		h.calls.Add(1)
		h.mu.Lock()
		stuck := h.stuck
		h.mu.Unlock()
		if stuck != nil {
			<-stuck
		}
	}
	return unix.Pread(fd, p, off)
}

func (h *hanging) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.stuck)
	h.stuck = nil
}

// TestAHangingSensorHidesNoOther has the driver of a zone not answer.
func TestAHangingSensorHidesNoOther(t *testing.T) {
	root := smallBoard(t)
	synctest.Test(t, func(t *testing.T) {
		h := &hanging{path: zone0Temp, stuck: make(chan struct{})}
		board := hw.Open(hw.Config{Root: root, Pread: h.pread})
		began := time.Now()
		for range 3 {
			s := board.Sample(t.Context())
			if got, err := s.Memory.Total.Get(); err != nil || got != 100*1024 {
				t.Errorf("memory: %d, %v", got, err)
			}
			if s.Thermal.SoC.OK() || len(s.Failing) != 1 || s.Failing[0].Sensor != "thermal" {
				t.Errorf("thermal: %+v, failing %+v", s.Thermal.SoC, s.Failing)
			}
		}
		if took := time.Since(began); took != 500*time.Millisecond {
			t.Errorf("three samples took %v: a sensor that hangs is to be waited for once", took)
		}
		if calls := h.calls.Load(); calls != 1 {
			t.Errorf("asked %d times while it hung", calls)
		}
		h.release()
		synctest.Wait()
		if s := board.Sample(t.Context()); !s.Thermal.SoC.OK() || len(s.Failing) > 0 {
			t.Errorf("after it answered: %+v, failing %+v", s.Thermal.SoC, s.Failing)
		}
		board.Close()
	})
}

// TestASlowSensorIsAskedSeldom has a driver answer after a second each time.
func TestASlowSensorIsAskedSeldom(t *testing.T) {
	root := smallBoard(t)
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		board := hw.Open(hw.Config{Root: root, Pread: func(path string, fd int, p []byte, off int64) (int, error) {
			if path == zone0Temp {
				calls.Add(1)
				<-time.After(time.Second)
			}
			return unix.Pread(fd, p, off)
		}})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		if err := board.Run(ctx); err != nil {
			t.Fatal(err)
		}
		// Three times in its turn, every 5 s, and then once a minute.
		if n := calls.Load(); n < 6 || n > 8 {
			t.Errorf("asked %d times in five minutes", n)
		}
		if s := board.Snapshot(); s.Thermal.SoC.Value != 47000 {
			t.Errorf("what it said late is lost: %+v", s.Thermal.SoC)
		}
		<-time.After(2 * time.Second)
		board.Close()
	})
}

// TestRunReadsInTime counts what Run reads in a minute.
func TestRunReadsInTime(t *testing.T) {
	root := smallBoard(t)
	synctest.Test(t, func(t *testing.T) {
		h := &hanging{path: meminfo}
		board := hw.Open(hw.Config{Root: root, Pread: h.pread})
		changed := board.Changed()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute-time.Millisecond)
		defer cancel()
		if err := board.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if n := h.calls.Load(); n != 2*12 { // a file of proc is read to its end
			t.Errorf("read %d times in a minute", n)
		}
		select {
		case <-changed:
		default:
			t.Error("nothing was said to have changed")
		}
		board.Close()
	})
}

// TestEAGAIN reads a file that has nothing to say yet: os.ReadFile would wait.
func TestEAGAIN(t *testing.T) {
	root := smallBoard(t)
	fifo := filepath.Join(root, zone0Temp)
	if err := os.Remove(fifo); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = writer.Close() }()
	// Of a FIFO pread is not possible, read is: as of an attribute at offset 0.
	board := hw.Open(hw.Config{Root: root, Pread: func(_ string, fd int, p []byte, _ int64) (int, error) { return unix.Read(fd, p) }})
	defer board.Close()
	s := board.Sample(t.Context())
	if zone := s.Thermal.Zones[0]; zone.Temp.Err != unix.EAGAIN || len(s.Failing) > 0 {
		t.Errorf("got %+v, failing %+v", zone, s.Failing)
	}
}

// TestFilesAreKept counts descriptors over samples, searches and the end.
func TestFilesAreKept(t *testing.T) {
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	before := open()
	board := hw.Open(hw.Config{})
	board.Sample(t.Context())
	after := open()
	if after <= before {
		t.Error("no file is kept open")
	}
	for range 10 {
		board.Rescan()
		board.Sample(t.Context())
	}
	if now := open(); now != after {
		t.Errorf("%d descriptors, %d after ten searches", after, now)
	}
	board.Close()
	if now := open(); now != before {
		t.Errorf("%d descriptors before, %d at the end", before, now)
	}
}

// TestADeviceThatComesBack has the file of a device replaced.
func TestADeviceThatComesBack(t *testing.T) {
	root := smallBoard(t)
	var gone atomic.Bool
	board := hw.Open(hw.Config{Root: root, Pread: func(path string, fd int, p []byte, off int64) (int, error) {
		if path == zone0Temp && gone.Load() {
			return 0, unix.ENODEV
		}
		return unix.Pread(fd, p, off)
	}})
	defer board.Close()
	board.Sample(t.Context())
	gone.Store(true)
	if s := board.Sample(t.Context()); s.Thermal.Zones[0].Temp.Err != unix.ENODEV {
		t.Errorf("while it was gone: %+v", s.Thermal.Zones)
	}
	gone.Store(false)
	file := filepath.Join(root, zone0Temp)
	if err := os.Rename(file, file+".old"); err != nil {
		t.Fatal(err)
	}
	put(t, file, "51000\n")
	if s := board.Sample(t.Context()); s.Thermal.SoC.Value != 51000 {
		t.Errorf("after it came back: %+v", s.Thermal.SoC)
	}
}

// TestSamplesDoNotGrow holds that the thousandth sample leaves no more than the
// hundredth.
func TestSamplesDoNotGrow(t *testing.T) {
	board := hw.Open(hw.Config{})
	defer board.Close()
	live := func(samples int) uint64 {
		for range samples {
			board.Sample(t.Context())
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapObjects
	}
	before := live(100)
	if after := live(1000); after > before+100 {
		t.Errorf("%d objects after 100 samples, %d after 1100", before, after)
	}
}

// TestReadOnlyFlip has a file system that was writable be remounted by its errors.
func TestReadOnlyFlip(t *testing.T) {
	const line = "29 1 179:2 / / rw,noatime shared:1 - ext4 /dev/mmcblk0p2 %\n" +
		"40 29 179:2 /data /mnt/with\\040space ro - ext4 /dev/mmcblk0p2 %\n" +
		"41 29 0:40 / /srv rw - nfs4 server:/srv rw\n"
	root := newTree(t, map[string]string{
		"proc/self/mountinfo": strings.ReplaceAll(line, "%", "rw,errors=remount-ro"), "sys/fs/ext4/mmcblk0p2/errors_count": "0\n",
	})
	board := hw.Open(hw.Config{Root: root})
	defer board.Close()
	s := board.Sample(t.Context())
	if len(s.Mounts) != 1 || s.Mounts[0].ReadOnly || s.Mounts[0].Flipped || !s.Mounts[0].Size.OK() || s.Mounts[0].Errors.Value != 0 {
		t.Fatalf("got %+v", s.Mounts)
	}
	put(t, filepath.Join(root, "proc/self/mountinfo"), strings.ReplaceAll(line, "%", "ro,errors=remount-ro"))
	put(t, filepath.Join(root, "sys/fs/ext4/mmcblk0p2/errors_count"), "3\n")
	if s = board.Sample(t.Context()); !s.Mounts[0].ReadOnly || !s.Mounts[0].Flipped || s.Mounts[0].Errors.Value != 3 {
		t.Errorf("got %+v", s.Mounts)
	}
}

// TestSnapshotIsTheCallers changes one that was handed out.
func TestSnapshotIsTheCallers(t *testing.T) {
	board := hw.Open(hw.Config{Root: smallBoard(t)})
	defer board.Close()
	first := board.Sample(t.Context())
	want, err := json.Marshal(first.Thermal)
	if err != nil {
		t.Fatal(err)
	}
	first.Thermal.Zones[0].Type = "changed"
	got, err := json.Marshal(board.Snapshot().Thermal)
	if err != nil || string(got) != string(want) {
		t.Errorf("got %s, want %s (%v)", got, want, err)
	}
}

// BenchmarkSample is all sensors of this machine at once, files kept open.
func BenchmarkSample(b *testing.B) {
	board := hw.Open(hw.Config{})
	defer board.Close()
	b.ReportAllocs()
	for b.Loop() {
		board.Sample(b.Context())
	}
}

// TestASampleIsCheap holds the budget of a sample of everything, files kept open: 5 ms.
func TestASampleIsCheap(t *testing.T) {
	board := hw.Open(hw.Config{})
	defer board.Close()
	board.Sample(t.Context())
	took := make([]time.Duration, 101)
	for i := range took {
		began := time.Now()
		board.Sample(t.Context())
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	if median := took[len(took)/2]; median > 5*time.Millisecond {
		t.Errorf("a sample takes %v", median)
	}
}
