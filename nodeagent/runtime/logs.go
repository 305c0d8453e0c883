package runtime

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
// when following, until the container has ended or ctx has. It reads the file
// that conmon writes; Podman is asked once for its path, and once more when a
// followed log ends. A container that is gone is container.ErrNotFound; one that
// has said nothing, or was not started, has an empty log.
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
	f, err := os.Open(data.HostConfig.LogConfig.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the log of container %s: %w", id, err)
	}
	defer f.Close()
	l := &logReader{file: f, options: o, out: w}
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
	watch, err := watchFile(l.file.Name())
	if err != nil {
		return err
	}
	defer watch.close()
	// Closed before it was watched?
	closed := !alive(state.ConmonPid)
	if err := l.seek(); err != nil {
		return err
	}
	for {
		if closed {
			// conmon writes no more; Podman knows soon.
			if ended, err := r.ended(ctx, id); err != nil || ended {
				return errors.Join(err, l.read(ctx))
			}
		}
		if err := l.read(ctx); err != nil {
			return err
		}
		limit := time.Duration(0)
		if closed {
			limit = shortestRetry
		}
		now, err := watch.next(ctx, limit)
		if err != nil {
			return err
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

// logReader turns a log file into what a person reads.
type logReader struct {
	file    *os.File
	options LogOptions
	out     io.Writer

	lines  *bufio.Reader
	rest   []byte // of a line whose end has not come yet
	inLine bool   // the last entry written was partial
}

// longestEntry bounds a line of the file; conmon's are a tenth of it.
const longestEntry = 128 << 10

// readNow reads what is there now.
func (l *logReader) readNow(ctx context.Context) error {
	if err := l.seek(); err != nil {
		return err
	}
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	at, err := l.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	l.lines = bufio.NewReader(io.LimitReader(l.file, max(info.Size()-at, 0)))
	return l.read(ctx)
}

// seek goes to the first entry that is wanted.
func (l *logReader) seek() error {
	l.lines = bufio.NewReader(l.file)
	if l.options.Tail < 0 {
		return nil
	}
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	start, err := tailStart(l.file, info.Size(), l.options.Tail)
	if err != nil {
		return err
	}
	_, err = l.file.Seek(start, io.SeekStart)
	return err
}

// read writes all entries up to the end of the file. It may be called again
// when there is more.
func (l *logReader) read(ctx context.Context) error {
	for ctx.Err() == nil {
		piece, err := l.lines.ReadSlice('\n')
		l.rest = append(l.rest, piece...)
		switch {
		case errors.Is(err, io.EOF):
			return nil
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

func (l *logReader) write(line []byte) error {
	e, ok := parseEntry(line)
	if !ok || e.time.Before(l.options.Since) {
		return nil
	}
	text := e.text
	if l.options.Timestamps && !l.inLine {
		text = append(e.time.UTC().AppendFormat(nil, "2006-01-02T15:04:05.000000000Z07:00 "), text...)
	}
	if l.inLine = e.partial; !e.partial {
		text = append(text, '\n')
	}
	_, err := l.out.Write(text)
	return err
}
