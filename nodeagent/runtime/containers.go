package runtime

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"bramble.dev/bramble/nodeagent/container"
)

// CreateContainer makes a container in its pod, which must exist, and returns
// its id. One that was made before from the same Hash is taken as it is; from
// another, the error is container.ErrChanged.
//
// The network namespace and the sources of all mounts must be there.
func (r *Runtime) CreateContainer(ctx context.Context, spec container.Spec) (id string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot create container %s: %w", spec.Name, err)
		}
	}()
	message := ""
	if spec.TerminationMessagePath != "" {
		if message, err = r.makeMessage(spec); err != nil {
			return "", err
		}
	}
	var made struct{ ID string }
	create := request{method: http.MethodPost, endpoint: "/containers/create", body: generator(spec, message)}
	err = r.call(ctx, create, &made)
	if err == nil || !isConflict(err) {
		return made.ID, createError(err)
	}
	id, err = r.adopt(ctx, spec)
	if !notFound(err) {
		return id, err
	}
	// Only the storage has the name: somebody was killed while making it.
	if err := r.RemoveContainer(ctx, containerName(spec)); err != nil {
		return "", err
	}
	err = r.call(ctx, create, &made)
	return made.ID, createError(err)
}

// adopt returns the id of the container that has spec's name.
func (r *Runtime) adopt(ctx context.Context, spec container.Spec) (string, error) {
	data, err := r.inspect(ctx, containerName(spec))
	if err != nil {
		return "", err
	}
	if data.Config == nil || data.Config.Labels[LabelHash] != spec.Hash || data.Config.Labels[LabelPodUID] != spec.PodUID {
		return "", container.ErrChanged
	}
	return data.ID, nil
}

// StartContainer starts a container that was made, and its pod's infra
// container if that has ended. It succeeds when the container runs already.
// What Podman or the OCI runtime refuses comes as ErrNoSuchCommand,
// ErrCannotExecute or ErrCannotStart of package container.
func (r *Runtime) StartContainer(ctx context.Context, id string) error {
	err := r.start(ctx, id)
	if err != nil {
		return fmt.Errorf("cannot start container: %w", startError(err))
	}
	return nil
}

func (r *Runtime) start(ctx context.Context, id string) error {
	q := request{method: http.MethodPost, endpoint: "/containers/%s/start", path: []string{id}}
	err := r.call(ctx, q, nil)
	if m := refusal(err); m != nil && isOCI(m.Because) && strings.Contains(m.Message, "already exists") {
		// The OCI runtime has it from a start that was broken off, or from before
		// all was killed. Podman cleans that up after the failure.
		err = r.call(ctx, q, nil)
	} else if m != nil && strings.Contains(m.Message, " start ") && strings.Contains(m.Message, "failed: exit status") {
		// It runs already, from a start after which Podman's service was killed
		// before it noted that, and would be refused for ever: stop lets Podman
		// look, and ends what no one knows of.
		if err := r.StopContainer(ctx, id, 0); err != nil {
			return err
		}
		err = r.call(ctx, q, nil)
	}
	return err
}

// StopContainer ends a container by its stop signal, and after graceSeconds by
// SIGKILL; it blocks until it has ended. It succeeds when it does not run or is
// gone.
func (r *Runtime) StopContainer(ctx context.Context, id string, graceSeconds int64) error {
	q := request{method: http.MethodPost, endpoint: "/containers/%s/stop", path: []string{id},
		query: url.Values{"timeout": {strconv.FormatInt(max(graceSeconds, 0), 10)}}}
	err := r.call(ctx, q, nil)
	if err == nil || notFound(err) {
		return nil
	}
	if isStateError(err) {
		if data, inspectErr := r.inspect(ctx, id); inspectErr == nil && phase(data.State.Status) != container.Running {
			return nil
		}
	}
	return fmt.Errorf("cannot stop container %s: %w", id, err)
}

// RemoveContainer removes a container and its anonymous volumes, killing it if
// it runs. It succeeds when it is gone.
func (r *Runtime) RemoveContainer(ctx context.Context, id string) error {
	q := request{method: http.MethodDelete, endpoint: "/containers/%s", path: []string{id},
		query: url.Values{"force": {"true"}, "v": {"true"}, "timeout": {"0"}}}
	if err := r.call(ctx, q, nil); err != nil && !notFound(err) {
		return fmt.Errorf("cannot remove container %s: %w", id, err)
	}
	return nil
}
