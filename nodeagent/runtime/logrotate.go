package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// How often the sizes of logs are looked at: seldom, but in time for one that
// grows fast.
const (
	rotateAtMost  = 10 * time.Second
	rotateAtFirst = time.Second // of a log of which nothing is known yet
	rotateAtLeast = 250 * time.Millisecond
)

// rotation is what is known of a running container's log.
type rotation struct {
	path string
	size int64
	at   time.Time
	rate float64 // by how many bytes a second it grew last
}

// RotateLogs keeps the logs of running containers within Config.LogBytes a file
// and Config.LogFiles files, until ctx ends. conmon, which writes them, is told to
// begin a new file when the old one has been renamed: no entry is lost. A log can
// be longer than the limit by what is written until its size is seen. Nothing but
// a full log touches the disk.
func (r *Runtime) RotateLogs(ctx context.Context) error {
	known := map[string]rotation{}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		timer.Reset(r.rotateOnce(ctx, known))
	}
}

// rotateOnce looks at all logs and returns when to look again.
func (r *Runtime) rotateOnce(ctx context.Context, known map[string]rotation) time.Duration {
	r.mu.Lock()
	ids := make([]string, 0, len(r.running))
	for id := range r.running {
		ids = append(ids, id)
	}
	r.mu.Unlock()
	next := rotateAtMost
	there := map[string]bool{}
	for _, id := range ids {
		there[id] = true
		log, err := r.lookAtLog(ctx, id, known[id])
		if err != nil {
			r.config.Log.Warn("cannot rotate a container's log", "container", id, "err", err)
			continue
		}
		next = min(next, log.due(known[id].path == "", r.config.LogBytes))
		known[id] = log
	}
	for id := range known {
		if !there[id] {
			delete(known, id)
		}
	}
	return max(next, rotateAtLeast)
}

// lookAtLog rotates a log that is full.
func (r *Runtime) lookAtLog(ctx context.Context, id string, before rotation) (rotation, error) {
	log := before
	if log.path == "" {
		path, err := r.logPath(ctx, id)
		if err != nil || path == "" {
			return rotation{}, err
		}
		log.path = path
	}
	log.at = time.Now()
	info, err := os.Stat(log.path)
	if errors.Is(err, fs.ErrNotExist) {
		// The agent was killed between the two steps of a rotation, unless nothing
		// was said yet, or the container is being removed.
		if err := reopen(log.path); !errors.Is(err, fs.ErrNotExist) {
			return log, err
		}
		return log, nil
	}
	if err != nil {
		return log, err
	}
	log.size = info.Size()
	log.rate = float64(log.size-before.size) / max(log.at.Sub(before.at).Seconds(), 0.001)
	if log.size < r.config.LogBytes {
		return log, nil
	}
	log.size = 0
	return log, rotate(log.path, r.config.LogFiles)
}

func (r *Runtime) logPath(ctx context.Context, id string) (string, error) {
	data, err := r.inspect(ctx, id)
	if notFound(err) || err == nil && (data.HostConfig == nil || data.HostConfig.LogConfig == nil) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return data.HostConfig.LogConfig.Path, nil
}

// due is how long it takes until a log is full if it grows as it did.
func (l rotation) due(first bool, limit int64) time.Duration {
	switch {
	case first && l.path != "":
		return rotateAtFirst
	case l.rate <= 0:
		return rotateAtMost
	}
	left := float64(limit-l.size) / l.rate
	return time.Duration(min(left, rotateAtMost.Seconds()) * float64(time.Second))
}

// rotate gives the current file the next number, has conmon begin a new one, and
// removes the oldest, so that with the new one there are at most files of them.
func rotate(path string, files int) error {
	old := rotatedLogs(path)
	next := 1
	if len(old) > 0 {
		next = number(path, filepath.Base(old[len(old)-1])) + 1
	}
	full := path + "." + strconv.Itoa(next)
	if err := os.Rename(path, full); err != nil {
		return err
	}
	if err := reopen(path); err != nil {
		return errors.Join(err, os.Rename(full, path)) // conmon writes to it still
	}
	old = append(old, full)
	for len(old) > max(files-1, 1) {
		if err := os.Remove(old[0]); err != nil {
			return err
		}
		old = old[1:]
	}
	return nil
}

// reopen tells the conmon that writes the log at path to make that file anew, by
// its control fifo (conmon(8): message 2). A conmon that is gone needs no telling.
func reopen(path string) error {
	ctl, err := os.OpenFile(filepath.Join(filepath.Dir(path), "ctl"), os.O_WRONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ENXIO) || errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot tell conmon to begin a new log: %w", err)
	}
	if err != nil {
		return err
	}
	_, err = ctl.WriteString("2 0 0\n")
	return errors.Join(err, ctl.Close())
}
