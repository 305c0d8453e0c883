package systemd_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"bramble.dev/bramble/systemd"
)

// manager listens as a service manager does, and returns its messages.
func manager(t *testing.T) func() string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return func() string {
		conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		buf := make([]byte, 4096)
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
}

func TestNotify(t *testing.T) {
	next := manager(t)
	for _, test := range []struct {
		send func() error
		want string
	}{
		{systemd.Ready, "READY=1"},
		{systemd.Stopping, "STOPPING=1"},
	} {
		if err := test.send(); err != nil {
			t.Error(err)
		}
		if got := next(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func TestNobodyListens(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	t.Setenv("WATCHDOG_USEC", "")
	if err := systemd.Ready(); err != nil {
		t.Error(err)
	}
	if err := systemd.Watchdog(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if l, err := systemd.Listeners(); err != nil || len(l) != 0 {
		t.Errorf("got %v, %v", l, err)
	}
}

func TestWatchdogIsSilentWhileUnhealthy(t *testing.T) {
	next := manager(t)
	t.Setenv("WATCHDOG_USEC", "30000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var asked, sick atomic.Int32
	done := make(chan error, 1)
	go func() {
		done <- systemd.Watchdog(ctx, func(context.Context) error {
			if asked.Add(1) <= 2 {
				sick.Add(1)
				return errors.New("sick")
			}
			return nil
		})
	}()
	if got := next(); got != "WATCHDOG=1" || sick.Load() != 2 {
		t.Errorf("got %q after %d bad checks", got, sick.Load())
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
