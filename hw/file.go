package hw

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// tree is where a board's files are. It is safe for concurrent use.
type tree struct {
	root  string
	pread func(path string, fd int, p []byte, off int64) (int, error)
	now   func() time.Duration
}

// recorded says that the files are another board's: what asks the kernel itself would
// hear of this machine.
func (t *tree) recorded() bool { return filepath.Clean(t.root) != "/" }

// file is an attribute of the kernel that is kept open: to read one anew costs a
// fifth of what opening it costs.
type file struct {
	path string // below the root
	fd   int    // -1: it is not open
}

// reader is what one sensor reads with: its files, and a buffer that it reuses.
//
// It reads by the system calls themselves. A driver that answers EAGAIN would make
// os.File wait for the file to become readable, for ever (prometheus/node_exporter,
// issue 3071).
type reader struct {
	*tree
	files []*file
	buf   []byte
}

// maxFile is the most that is read of a file, in bytes.
const maxFile = 1 << 20

// open keeps a file open; it is nil if it is not there or not for us. What keeps
// a file from being opened now is told by every read of it, but not its absence.
func (r *reader) open(path ...string) *file {
	f := &file{path: filepath.Join(path...), fd: -1}
	if err := r.reopen(f); err != nil && absent(err) {
		return nil
	}
	r.files = append(r.files, f)
	return f
}

func (r *reader) reopen(f *file) error {
	fd, err := unix.Open(filepath.Join(r.root, f.path), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err == nil {
		f.fd = fd
	}
	return err
}

// close closes all files, before others are found.
func (r *reader) close() {
	for _, f := range r.files {
		r.drop(f)
	}
	r.files = r.files[:0]
}

// forget closes files that are not read again.
func (r *reader) forget(files ...*file) {
	r.files = slices.DeleteFunc(r.files, func(f *file) bool { return slices.Contains(files, f) })
	for _, f := range files {
		if f != nil {
			r.drop(f)
		}
	}
}

func (r *reader) drop(f *file) {
	if f.fd >= 0 {
		_ = unix.Close(f.fd)
		f.fd = -1
	}
}

// bytes returns what f has now without space at its end, until the next call. A nil
// file is ErrAbsent.
func (r *reader) bytes(f *file) ([]byte, error) {
	if f == nil {
		return nil, ErrAbsent
	}
	if f.fd < 0 {
		if err := r.reopen(f); err != nil {
			return nil, err
		}
	}
	if r.buf == nil {
		r.buf = make([]byte, 4096)
	}
	length := 0
	for {
		n, err := r.pread(f.path, f.fd, r.buf[length:], int64(length))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			r.drop(f) // perhaps the device went, and another has its name
			return nil, err
		}
		length += n
		if n == 0 || length < len(r.buf) && !strings.HasPrefix(f.path, "proc/") {
			return trim(r.buf[:length]), nil // one read is all of an attribute; a second would ask the device again
		}
		if length == len(r.buf) {
			if length >= maxFile {
				return nil, ErrFormat
			}
			r.buf = append(r.buf, make([]byte, length)...)
		}
	}
}

// integer reads a whole number in base 10.
func (r *reader) integer(f *file) (int64, error) {
	data, err := r.bytes(f)
	if err != nil {
		return 0, err
	}
	return parseInt(data)
}

// text reads a file once: what does not change. It is "" if it cannot be read.
func (r *reader) text(path ...string) string {
	s, _ := r.once(path...)
	return s
}

// once reads a file once, or says why it cannot.
func (r *reader) once(path ...string) (string, error) {
	f := &file{path: filepath.Join(path...), fd: -1}
	data, err := r.bytes(f)
	r.drop(f)
	if absent(err) {
		err = ErrAbsent
	}
	return string(data), err
}

// number reads a whole number once; ok is false if there is none.
func (r *reader) number(path ...string) (n int64, ok bool) {
	s, err := r.once(path...)
	if err != nil {
		return 0, false
	}
	n, err = parseInt([]byte(s))
	return n, err == nil
}

// names lists a directory in the order of the numbers in its names ("zone2" before
// "zone10"). It is empty if there is none.
func (r *reader) names(path ...string) []string {
	entries, err := os.ReadDir(filepath.Join(r.root, filepath.Join(path...)))
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	sortNatural(names)
	return names
}

// link is the last part of what a symbolic link names; "" if it is none.
func (r *reader) link(path ...string) string {
	to, err := os.Readlink(filepath.Join(r.root, filepath.Join(path...)))
	if err != nil {
		return ""
	}
	return filepath.Base(to)
}

// exists says whether there is such a file.
func (r *reader) exists(path ...string) bool {
	_, err := os.Lstat(filepath.Join(r.root, filepath.Join(path...)))
	return err == nil
}

func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)
}

// pread reads at an offset, and never waits for data.
func pread(_ string, fd int, p []byte, off int64) (int, error) { return unix.Pread(fd, p, off) }
