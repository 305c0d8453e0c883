package hw

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// Two messages as a kernel sent them (Linux 6, an "add" by the file uevent), and others
// of their form.
const (
	ttyAdded = "add@/devices/pnp0/00:00/00:00:0/00:00:0.0/tty/ttyS0\x00ACTION=add\x00DEVPATH=/devices/pnp0/00:00/00:00:0/00:00:0.0/tty/ttyS0\x00" +
		"SUBSYSTEM=tty\x00SYNTH_UUID=0\x00MAJOR=4\x00MINOR=64\x00DEVNAME=ttyS0\x00SEQNUM=53147\x00"
	diskAdded = "add@/devices/virtual/block/loop0\x00ACTION=add\x00DEVPATH=/devices/virtual/block/loop0\x00SUBSYSTEM=block\x00SYNTH_UUID=0\x00" +
		"MAJOR=7\x00MINOR=0\x00DEVNAME=loop0\x00DEVTYPE=disk\x00DISKSEQ=1\x00SEQNUM=53148\x00"
	usbGone       = "remove@/devices/platform/soc/3f980000.usb/usb1/1-1\x00ACTION=remove\x00DEVPATH=/devices/platform/soc/3f980000.usb/usb1/1-1\x00SUBSYSTEM=usb\x00DEVTYPE=usb_device\x00SEQNUM=1\x00"
	supplyChanged = "change@/devices/platform/x/power_supply/bat\x00ACTION=change\x00DEVPATH=/devices/platform/x/power_supply/bat\x00SUBSYSTEM=power_supply\x00SEQNUM=2\x00"
	moduleAdded   = "add@/module/w1_gpio\x00ACTION=add\x00DEVPATH=/module/w1_gpio\x00SUBSYSTEM=module\x00SEQNUM=3\x00"
	ofUdev        = "libudev\x00\xfe\xed\xca\xfe(\x00\x00\x00SUBSYSTEM=tty\x00"
)

func TestConcerns(t *testing.T) {
	for message, want := range map[string]bool{
		ttyAdded: true, diskAdded: true, usbGone: true, supplyChanged: false, moduleAdded: false, ofUdev: false,
		"": false, "add@/x": false, "add@/x\x00SUBSYSTEM=": false, "add@/x\x00SUBSYSTEM=tty": true,
	} {
		if got := concerns([]byte(message)); got != want {
			t.Errorf("%q: %v", message, got)
		}
	}
}

// TestReceive reads messages from a socket, one a read, until it is closed.
func TestReceive(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(pair[1]) }()
	conn := os.NewFile(uintptr(pair[0]), "uevents")
	events, ended := make(chan struct{}, 1), make(chan struct{})
	go func() {
		receive(conn, events)
		close(ended)
	}()
	for _, message := range []string{supplyChanged, moduleAdded, ttyAdded} {
		if _, err := unix.Write(pair[1], []byte(message)); err != nil {
			t.Fatal(err)
		}
	}
	<-events
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	<-ended
}

// TestTheKernelHasEvents opens the real socket.
func TestTheKernelHasEvents(t *testing.T) {
	conn, err := listenUevents()
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	b := Open(Config{})
	defer b.Close()
	ctx, cancel := context.WithCancel(t.Context())
	rescan, ended := b.hotplug(ctx)
	cancel()
	ended() // although nothing comes
	if rescan == nil {
		t.Error("this machine is not watched")
	}
}

// feed is a socket that says what a test has it say.
type feed struct {
	messages chan any // string or error
	closed   chan struct{}
}

func (f *feed) Read(p []byte) (int, error) {
	select {
	case <-f.closed:
		return 0, os.ErrClosed
	case m := <-f.messages:
		if err, ok := m.(error); ok {
			return 0, err
		}
		return copy(p, m.(string)), nil
	}
}

func (f *feed) Close() error {
	close(f.closed)
	return nil
}

// rescans counts them while a script feeds the socket, and for a while after.
func rescans(t *testing.T, conn io.ReadCloser, script func(), after time.Duration) int {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	rescan, ended := watch(ctx, conn, rescanEvery)
	count, done := 0, make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-rescan:
				count++
			case <-ctx.Done():
				return
			}
		}
	}()
	script()
	time.Sleep(after)
	synctest.Wait()
	cancel()
	<-done
	ended()
	return count
}

func TestRescans(t *testing.T) {
	many := func(f *feed, n int, message any, apart time.Duration) func() {
		return func() {
			for range n {
				f.messages <- message
				time.Sleep(apart)
			}
		}
	}
	lost := error(&os.PathError{Op: "read", Path: "uevents", Err: unix.ENOBUFS})
	for _, test := range []struct {
		name     string
		n        int
		message  any
		apart    time.Duration
		after    time.Duration
		min, max int
	}{
		{name: "not within a second", n: 1, message: ttyAdded, after: 999 * time.Millisecond},
		{name: "after a second", n: 1, message: ttyAdded, after: 1001 * time.Millisecond, min: 1, max: 1},
		{name: "many at once", n: 1000, message: ttyAdded, apart: time.Microsecond, after: time.Minute, min: 1, max: 1},
		{name: "a loose plug for a minute", n: 120, message: usbGone, apart: 500 * time.Millisecond, min: 10, max: 13},
		{name: "none of ours", n: 1000, message: supplyChanged, after: time.Minute},
		{name: "some were lost", n: 1, message: lost, after: time.Minute, min: 1, max: 1},
		{name: "silence", after: time.Hour + time.Second, min: 6, max: 6},
		{name: "a socket that breaks", n: 1, message: unix.EBADF, after: time.Hour + time.Second, min: 6, max: 6},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &feed{messages: make(chan any), closed: make(chan struct{})}
				if got := rescans(t, f, many(f, test.n, test.message, test.apart), test.after); got < test.min || got > test.max {
					t.Errorf("%d rescans, want %d to %d", got, test.min, test.max)
				}
			})
		})
	}
	t.Run("refused", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			if got := rescans(t, nil, func() {}, time.Hour+time.Second); got != 6 {
				t.Errorf("%d rescans an hour, want 6", got)
			}
		})
	})
}

// TestASocketThatOnlyLosesIsLeft holds that it is not read for ever.
func TestASocketThatOnlyLosesIsLeft(t *testing.T) {
	events := make(chan struct{}, 1)
	reads := 0
	receive(readFunc(func([]byte) (int, error) { reads++; return 0, unix.ENOBUFS }), events)
	if reads != maxLost {
		t.Errorf("%d reads", reads)
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// TestABoardSeesWhatCame adds a device while the board is read.
func TestABoardSeesWhatCame(t *testing.T) {
	root := t.TempDir()
	b := Open(Config{Root: root})
	defer b.Close()
	ctx, cancel := context.WithCancel(t.Context())
	rescan, ended := make(chan struct{}), make(chan struct{})
	go func() {
		b.readUntil(ctx, rescan)
		close(ended)
	}()
	if err := os.MkdirAll(filepath.Join(root, "sys/class/spidev/spidev0.0"), 0o755); err != nil {
		t.Fatal(err)
	}
	rescan <- struct{}{}
	for changed := b.Changed(); len(b.Snapshot().Devices) == 0; changed = b.Changed() {
		select {
		case <-changed:
		case <-time.After(time.Second):
		}
	}
	cancel()
	<-ended
}

// TestAnotherRootIsRescanned holds that of a recorded board, of which no kernel tells,
// devices come and go too.
func TestAnotherRootIsRescanned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := Open(Config{Root: t.TempDir(), Rescan: 5 * time.Second})
		defer b.Close()
		ctx, cancel := context.WithCancel(t.Context())
		rescan, ended := b.hotplug(ctx)
		began := time.Now()
		<-rescan
		if after := time.Since(began); after != 5*time.Second {
			t.Errorf("after %v", after)
		}
		cancel()
		ended()
	})
}

func FuzzConcerns(f *testing.F) {
	for _, s := range []string{ttyAdded, diskAdded, usbGone, supplyChanged, ofUdev} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		if concerns(message) && !bytes.Contains(message, []byte("\x00SUBSYSTEM=")) {
			t.Errorf("%q", message)
		}
		if concerns(append([]byte("change@/x\x00"), message...)) {
			t.Errorf("a change counts: %q", strings.ToValidUTF8(string(message), "?"))
		}
	})
}
