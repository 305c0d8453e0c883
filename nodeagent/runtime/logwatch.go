package runtime

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// fileWatch tells of writes to a file, by inotify.
type fileWatch struct{ file *os.File }

// watchFile watches f itself, whatever name it has by now.
func watchFile(f *os.File) (*fileWatch, error) {
	path := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot watch %s: %w", path, err)
	}
	w := &fileWatch{os.NewFile(uintptr(fd), "inotify")}
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_MODIFY|unix.IN_CLOSE_WRITE|unix.IN_DELETE_SELF|unix.IN_ATTRIB|unix.IN_MOVE_SELF); err != nil {
		w.close()
		return nil, fmt.Errorf("cannot watch %s: %w", path, err)
	}
	return w, nil
}

func (w *fileWatch) close() { _ = w.file.Close() }

// next waits for something to happen to the file, at most for limit (0: without
// a limit), and says whether its writer has closed it or it was removed.
func (w *fileWatch) next(ctx context.Context, limit time.Duration) (closed bool, err error) {
	deadline := time.Time{}
	if limit > 0 {
		deadline = time.Now().Add(limit)
	}
	if err := w.file.SetReadDeadline(deadline); err != nil {
		return false, err
	}
	stop := context.AfterFunc(ctx, func() { _ = w.file.SetReadDeadline(time.Now()) })
	defer stop()
	buf := make([]byte, 16*(unix.SizeofInotifyEvent+unix.NAME_MAX+1))
	n, err := w.file.Read(buf)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return false, nil
	case err != nil:
		return false, err
	}
	return closing(buf[:n]), nil
}

// closing looks for an end in what inotify said (inotify(7)): wd, mask, cookie
// and length, then a name of that length.
func closing(events []byte) bool {
	const ends = unix.IN_CLOSE_WRITE | unix.IN_DELETE_SELF | unix.IN_IGNORED
	for len(events) >= unix.SizeofInotifyEvent {
		mask := binary.NativeEndian.Uint32(events[4:])
		length := int(binary.NativeEndian.Uint32(events[12:]))
		if mask&ends != 0 {
			return true
		}
		events = events[min(unix.SizeofInotifyEvent+length, len(events)):]
	}
	return false
}

// written says whether conmon, whose process id is given, has the log f open: it
// closes that before it runs Podman's exit command, and lives on meanwhile. The kernel
// grants no read lease on a file that somebody has open for writing (fcntl(2)).
func written(f *os.File, conmon int) bool {
	_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	switch {
	case err == nil:
		_, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK) // else with f
		return false
	case errors.Is(err, unix.EAGAIN):
		return true
	}
	return alive(conmon) // a file system without leases
}

// alive says whether a process exists.
func alive(pid int) bool {
	if pid <= 0 {
		return false
	}
	err := unix.Kill(pid, 0)
	return err == nil || errors.Is(err, unix.EPERM)
}
