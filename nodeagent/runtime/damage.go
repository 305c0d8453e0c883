package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"bramble.dev/bramble/nodeagent/container"
)

// damaged returns err, or container.ErrImageDamaged when an inspect of an image
// shows that a layer of it is lost: by Podman's refusal, or because a directory
// that it names is not there. It reads no file of the image.
func damaged(err error, directories map[string]string) error {
	if m := refusal(err); m != nil && m.ResponseCode == http.StatusInternalServerError && tellsOfDamage(m.Message) {
		return fmt.Errorf("%w: podman cannot read its layers (%s)", container.ErrImageDamaged, m.Message)
	}
	if err != nil {
		return err
	}
	for _, name := range []string{"UpperDir", "LowerDir"} { // the overlay driver's
		for dir := range strings.SplitSeq(directories[name], ":") {
			if dir == "" {
				continue
			}
			if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EIO) {
				return fmt.Errorf("%w: %w", container.ErrImageDamaged, err)
			}
		}
	}
	return nil
}

// tellsOfDamage knows Podman's words where its storage has lost a layer: 4.3.1
// panics over an image whose layers are unknown.
func tellsOfDamage(message string) bool {
	for _, words := range []string{"layer not known", "nil pointer dereference", "input/output error", "/overlay/"} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}

// isFull says whether the file system of a path takes no more files worth the name.
func isFull(path string) bool {
	const least = 1 << 20
	var fs unix.Statfs_t
	if unix.Statfs(path, &fs) != nil {
		return false
	}
	return fs.Blocks > 0 && int64(fs.Bavail)*int64(fs.Bsize) < least || fs.Files > 0 && fs.Ffree == 0
}

// isUnmountable says that a container's start failed because its files cannot
// be mounted: its layer, or one of its image, is lost.
func isUnmountable(err error) bool {
	m := refusal(err)
	return m != nil && strings.Contains(m.Message, "mounting storage for container")
}

// RemoveImage removes an image with all containers that were made from it, also
// those that run. It succeeds when there is none.
func (r *Runtime) RemoveImage(ctx context.Context, ref string) error {
	name, err := normal(ref)
	if err != nil {
		return err
	}
	q := request{method: http.MethodDelete, endpoint: "/images/%s", path: []string{name}, query: url.Values{"force": {"true"}}}
	if err := r.call(ctx, q, nil); err != nil && !notFound(err) {
		return fmt.Errorf("cannot remove image %q: %w", ref, err)
	}
	return nil
}
