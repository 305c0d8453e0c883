package hw

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	rescanAfter = time.Second      // the first event: others follow, and udev makes links and rights
	rescanApart = 5 * time.Second  // for a device whose plug is loose
	rescanEvery = 10 * time.Minute // without events, which need not all reach us

	maxUevent = 8192 // bytes; the kernel's own limit is a path and 2048
	maxLost   = 16   // times in a row that the socket overflows: then it is broken
)

// hotplugged are the subsystems whose devices the sensors list.
var hotplugged = []string{
	"accel", "apex", "block", "bluetooth", "drm", "gpio", "hailo_chardev", "hwmon", "i2c", "i2c-dev", "iio", "misc",
	"net", "power_supply", "sound", "spidev", "thermal", "tty", "usb", "video4linux", "w1",
}

// hotplug returns a channel that says when to look for devices again, and what waits
// for its goroutines, which end with ctx. Of another root than "/" no kernel tells.
func (b *Board) hotplug(ctx context.Context) (rescan <-chan struct{}, ended func()) {
	if b.tree.recorded() {
		if b.rescan == 0 {
			return nil, func() {}
		}
		return watch(ctx, nil, b.rescan)
	}
	conn, err := listenUevents()
	if err != nil {
		return watch(ctx, nil, rescanEvery) // refused, as a filter of system calls may
	}
	return watch(ctx, conn, rescanEvery)
}

// listenUevents opens the socket on which the kernel tells of devices. Any user may.
//
// The kernel tells of most devices in the network namespaces that belong to the first
// user namespace, and of a network interface in its own only (lib/kobject_uevent.c).
// In another one the socket opens and stays silent.
func listenUevents() (io.ReadCloser, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		return nil, err
	}
	const ofKernel = 1 // group 2 is udev's
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: ofKernel}); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "uevents"), nil
}

// watch is hotplug with conn, of which each read is one message; nil: there is none.
// In silence there is a rescan every so often.
func watch(ctx context.Context, conn io.ReadCloser, every time.Duration) (<-chan struct{}, func()) {
	events, rescan := make(chan struct{}, 1), make(chan struct{}, 1)
	var all sync.WaitGroup
	all.Go(func() { settle(ctx, events, rescan, every) })
	if conn != nil {
		all.Go(func() { receive(conn, events) })
		all.Go(func() {
			<-ctx.Done()
			_ = conn.Close() // ends receive
		})
	}
	return rescan, all.Wait
}

// receive tells of messages that concern us until conn ends. A flood, of which the
// kernel has dropped some, is as good as one of them.
func receive(conn io.Reader, events chan<- struct{}) {
	message := make([]byte, maxUevent)
	lost := 0
	for lost < maxLost {
		n, err := conn.Read(message)
		switch {
		case errors.Is(err, unix.ENOBUFS):
			lost++
		case err != nil:
			return
		default:
			lost = 0
			if !concerns(message[:n]) {
				continue
			}
		}
		signal(events)
	}
}

// settle turns many events into one rescan a little later.
func settle(ctx context.Context, events <-chan struct{}, rescan chan<- struct{}, every time.Duration) {
	var last time.Time // of the rescan before
	timer := time.NewTimer(every)
	defer timer.Stop()
	waiting := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-events:
			if !waiting {
				waiting = true
				timer.Reset(max(rescanAfter, time.Until(last.Add(rescanApart))))
			}
		case <-timer.C:
			waiting, last = false, time.Now()
			timer.Reset(every)
			signal(rescan)
		}
	}
}

// signal leaves a word in a channel of one, unless one is there.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// concerns says whether a message of the kernel is of a device that came, went or got
// another name, and that we list: "add@/devices/...", and then NAME=value, each with a
// NUL at its end.
func concerns(message []byte) bool {
	head, rest, _ := bytes.Cut(message, []byte{0})
	action, _, ok := bytes.Cut(head, []byte{'@'})
	if !ok || !slices.Contains([]string{"add", "remove", "move"}, string(action)) {
		return false
	}
	for len(rest) > 0 {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte{0})
		if subsystem, ok := strings.CutPrefix(string(line), "SUBSYSTEM="); ok {
			return slices.Contains(hotplugged, subsystem)
		}
	}
	return false
}
