package runtime

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/containers/podman/v5/libpod/define"

	"bramble.dev/bramble/nodeagent/container"
)

// LogOptions say which part of a log is wanted, as the pods/log subresource's do.
type LogOptions struct {
	Follow     bool
	Timestamps bool      // each line begins with its time
	Tail       int64     // the last lines; -1: all
	Since      time.Time // zero: from the start
}

// Logs writes what a container has said to w: until the end as it is now or,
// when following, until the container has ended or ctx has. It reads the files
// that conmon writes, across their rotations; Podman is asked once for their path,
// and once more when a followed log ends. A container that is gone is
// container.ErrNotFound; one that has said nothing, or was not started, has an
// empty log.
func (r *Runtime) Logs(ctx context.Context, id string, o LogOptions, w io.Writer) error {
	data, err := r.inspect(ctx, id)
	if notFound(err) {
		return fmt.Errorf("cannot read the log of container %s: %w", id, container.ErrNotFound)
	}
	if err != nil {
		return fmt.Errorf("cannot read the log of container %s: %w", id, err)
	}
	if data.HostConfig == nil || data.HostConfig.LogConfig == nil || data.HostConfig.LogConfig.Path == "" {
		return fmt.Errorf("cannot read the log of container %s: podman knows no file of it", id)
	}
	l := newLogReader(data.HostConfig.LogConfig.Path, o, w)
	defer l.close()
	if o.Follow && phase(data.State.Status) == container.Running {
		err = r.followLog(ctx, id, l, data.State)
	} else {
		err = l.readNow(ctx)
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("cannot read the log of container %s: %w", id, err)
	}
	return err
}

// followLog reads until the container has ended.
func (r *Runtime) followLog(ctx context.Context, id string, l *logReader, state *define.InspectContainerState) error {
	if err := l.open(); err != nil {
		return err
	}
	for {
		if err := l.readFull(ctx); err != nil {
			return err
		}
		more, err := r.followFile(ctx, id, l, state)
		if err != nil || !more {
			return err
		}
	}
}

// followFile reads the current file until it is rotated, and says that there are
// more then, or until the container has ended.
func (r *Runtime) followFile(ctx context.Context, id string, l *logReader, state *define.InspectContainerState) (more bool, err error) {
	f := l.files[0]
	watch, err := watchFile(f)
	if err != nil {
		return false, err
	}
	defer watch.close()
	for closed := l.ended || !written(f, state.ConmonPid); ; { // closed before it was watched?
		if closed && !l.ended {
			// conmon writes no more to this file; if that is not because there is
			// a new one, Podman knows soon of the end.
			if l.ended, err = r.ended(ctx, id); err != nil {
				return false, err
			}
		}
		// Looked for before the last read of this one, which conmon has closed
		// before it makes another.
		newer, err := after(l.path, f)
		if err != nil {
			return false, err
		}
		if err := l.read(ctx); err != nil || l.ended || len(newer) > 0 {
			return l.next(newer), err
		}
		limit := time.Duration(0)
		if closed {
			limit = shortestRetry
		}
		now, err := watch.next(ctx, limit)
		if err != nil {
			return false, err
		}
		closed = closed || now
	}
}

// ended says whether a container runs no more, or is gone.
func (r *Runtime) ended(ctx context.Context, id string) (bool, error) {
	data, err := r.inspect(ctx, id)
	switch {
	case notFound(err):
		return true, nil
	case errors.Is(err, container.ErrUnavailable):
		return false, nil // asked again
	case err != nil:
		return false, err
	}
	return phase(data.State.Status) != container.Running, nil
}

// logReader turns a log's files into what a person reads.
type logReader struct {
	path    string
	options LogOptions
	out     *bufio.Writer // flushed whenever there is no more to read

	files  []*os.File // still to be read, oldest first; the first is being read
	lines  *bufio.Reader
	rest   []byte // of a line whose end has not come yet
	inLine bool   // the last entry was partial
	early  bool   // the line began before the time since which it is wanted
	ended  bool   // the container has: conmon writes no more
}

func newLogReader(path string, o LogOptions, w io.Writer) *logReader {
	return &logReader{path: path, options: o, out: bufio.NewWriterSize(w, 16<<10)}
}

// longestEntry bounds a line of the file; conmon's are a tenth of it.
const longestEntry = 128 << 10

func (l *logReader) close() { closeAll(l.files) }

// readNow reads what is there now.
func (l *logReader) readNow(ctx context.Context) error {
	if err := l.open(); err != nil || len(l.files) == 0 {
		return err
	}
	if err := l.readFull(ctx); err != nil {
		return err
	}
	info, err := l.files[0].Stat()
	if err != nil {
		return err
	}
	at, err := l.files[0].Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	l.lines = bufio.NewReader(io.LimitReader(l.files[0], max(info.Size()-at, 0)))
	return l.read(ctx)
}

// open opens the files and goes to the first entry that is wanted.
func (l *logReader) open() (err error) {
	if l.files, err = logFiles(l.path); err != nil || len(l.files) == 0 {
		return err
	}
	if l.options.Tail >= 0 {
		if err := l.seekTail(); err != nil {
			return err
		}
	}
	l.lines = bufio.NewReader(l.files[0])
	return nil
}

// seekTail drops the files, and goes past the entries, before the last lines.
func (l *logReader) seekTail() error {
	left, newest := l.options.Tail, true
	for i := len(l.files) - 1; i >= 0; i-- {
		info, err := l.files[i].Stat()
		if err != nil {
			return err
		}
		start, lines, err := tailStart(l.files[i], info.Size(), left, newest)
		if err != nil {
			return err
		}
		newest = newest && info.Size() == 0 // what it goes on with is still to come
		if left -= lines; left >= 0 && start == 0 && i > 0 {
			continue
		}
		if _, err := l.files[i].Seek(start, io.SeekStart); err != nil {
			return err
		}
		closeAll(l.files[:i])
		l.files = l.files[i:]
		return nil
	}
	return nil
}

// readFull reads all files but the last.
func (l *logReader) readFull(ctx context.Context) error {
	for len(l.files) > 1 {
		if err := l.read(ctx); err != nil {
			return err
		}
		l.next(nil)
	}
	return nil
}

// next leaves the first file for those after it, and says that there are some.
func (l *logReader) next(more []*os.File) bool {
	rest := append(l.files[1:], more...)
	if len(rest) == 0 {
		return false
	}
	_ = l.files[0].Close()
	l.files, l.rest = rest, l.rest[:0]
	l.lines = bufio.NewReader(l.files[0])
	return true
}

// read writes all entries up to the end of the file. It may be called again
// when there is more.
func (l *logReader) read(ctx context.Context) error {
	for ctx.Err() == nil {
		piece, err := l.lines.ReadSlice('\n')
		l.rest = append(l.rest, piece...)
		switch {
		case errors.Is(err, io.EOF):
			return l.out.Flush()
		case errors.Is(err, bufio.ErrBufferFull) && len(l.rest) < longestEntry:
			continue
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
		err = l.write(l.rest)
		l.rest = l.rest[:0]
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// write writes an entry, if its line is wanted: a line is there as a whole or not at all.
func (l *logReader) write(line []byte) error {
	e, ok := parseEntry(line)
	if !ok {
		return nil
	}
	begins := !l.inLine
	l.inLine = e.partial
	if begins {
		l.early = e.time.Before(l.options.Since)
	}
	if l.early {
		return nil
	}
	text := e.text
	if l.options.Timestamps && begins {
		text = append(e.time.UTC().AppendFormat(nil, "2006-01-02T15:04:05.000000000Z07:00 "), text...)
	}
	if !e.partial {
		text = append(text, '\n')
	}
	_, err := l.out.Write(text)
	return err
}
