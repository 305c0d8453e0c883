package runtime

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/containers/podman/v5/libpod/define"

	"bramble.dev/bramble/nodeagent/container"
)

// messageLimit is Kubernetes' limit of a termination message, in bytes.
const messageLimit = 4096

// keptMessages is how many runs' messages of one container are kept, the
// coming one included.
const keptMessages = 3

// messageFile is where a container's termination message is kept: a file that
// is mounted into it.
func (r *Runtime) messageFile(uid, name string, restarts int) string {
	return filepath.Join(r.messageDir(uid), clean(name)+"_"+strconv.Itoa(restarts))
}

func (r *Runtime) messageDir(uid string) string {
	return filepath.Join(r.config.StateDir, "termination", podName(uid))
}

// makeMessage makes the file, empty, for any user of the container to write.
func (r *Runtime) makeMessage(s container.Spec) (string, error) {
	if err := os.MkdirAll(r.messageDir(s.PodUID), 0o711); err != nil {
		return "", fmt.Errorf("cannot keep termination messages: %w", err)
	}
	_ = os.Remove(r.messageFile(s.PodUID, s.Name, s.Restarts-keptMessages)) // mostly gone already
	path := r.messageFile(s.PodUID, s.Name, s.Restarts)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return "", fmt.Errorf("cannot keep termination messages: %w", err)
	}
	defer f.Close()
	return path, f.Chmod(0o666) // whatever the umask
}

// message reads what the container left; nothing is as good as an empty message.
func (r *Runtime) message(labels map[string]string) string {
	restarts, _ := strconv.Atoi(labels[LabelRestarts])
	f, err := os.Open(r.messageFile(labels[LabelPodUID], labels[LabelContainer], restarts))
	if err != nil {
		return ""
	}
	defer f.Close()
	data, _ := io.ReadAll(io.LimitReader(f, messageLimit))
	return string(data)
}

// What of a log stands for a message (Kubernetes' limits).
const (
	logMessageLines = 80
	logMessageBytes = 2048
)

// logMessage is the end of a container's log; nothing is as good as an empty one.
func logMessage(ctx context.Context, data define.InspectContainerData) string {
	if data.HostConfig == nil || data.HostConfig.LogConfig == nil {
		return ""
	}
	var end lastBytes
	l := newLogReader(data.HostConfig.LogConfig.Path, LogOptions{Tail: logMessageLines}, &end)
	defer l.close()
	_ = l.readNow(ctx) // what was read is better than nothing
	return string(end)
}

// lastBytes keeps the last logMessageBytes of what is written to it.
type lastBytes []byte

func (b *lastBytes) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	if over := len(*b) - logMessageBytes; over > 0 {
		*b = append((*b)[:0], (*b)[over:]...)
	}
	return len(p), nil
}

func (r *Runtime) removeMessages(uid string) error {
	if err := os.RemoveAll(r.messageDir(uid)); err != nil {
		return fmt.Errorf("cannot remove termination messages of pod %s: %w", uid, err)
	}
	return nil
}
