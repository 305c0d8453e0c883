package runtime

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"

	"bramble.dev/bramble/nodeagent/container"
)

// pauseVersion is raised with each change of the pause program, so that nodes
// load the new one.
const pauseVersion = "1"

const (
	pauseImage = "localhost/bramble/pause:" + pauseVersion
	pausePath  = "/pause"
)

// ensurePause makes sure of the pause image. It asks Podman once in a
// Runtime's life, and again after forgetPause.
func (r *Runtime) ensurePause(ctx context.Context) error {
	r.mu.Lock()
	there := r.pauseThere
	r.mu.Unlock()
	if there {
		return nil
	}
	_, err := r.image(ctx, pauseImage)
	switch {
	case notFound(err):
		err = r.loadPause(ctx, "")
	case errors.Is(err, container.ErrImageDamaged):
		// Not removed: what runs of it would go too. The same program with
		// something beside it is another layer, which storage takes for new.
		err = r.loadPause(ctx, rand.Text())
	}
	if err != nil {
		return fmt.Errorf("cannot load the pause image: %w", err)
	}
	r.setPause(true)
	return nil
}

// loadPause makes the image: the program is all that is in it, but for an empty
// file named mark, if that is not empty.
func (r *Runtime) loadPause(ctx context.Context, mark string) error {
	program, err := os.ReadFile(r.config.PauseFile)
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	header := &tar.Header{Typeflag: tar.TypeReg, Name: pausePath[1:], Mode: 0o755, Size: int64(len(program))}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	if _, err := w.Write(program); err != nil {
		return err
	}
	if mark != "" {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: mark, Mode: 0o644}); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return r.call(ctx, request{method: http.MethodPost, endpoint: "/images/import",
		query: url.Values{"reference": {pauseImage}, "changes": {`ENTRYPOINT ["` + pausePath + `"]`}},
		body:  archive.Bytes()}, nil)
}

// forgetPause has the image looked for again when a pod's creation failed:
// somebody may have removed it (podman image prune).
func (r *Runtime) forgetPause(err error) {
	if refusal(err) != nil {
		r.setPause(false)
	}
}

func (r *Runtime) setPause(there bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pauseThere = there
}
