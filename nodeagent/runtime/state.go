package runtime

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/containers/podman/v5/libpod/define"

	"bramble.dev/bramble/nodeagent/container"
)

// listed is what we read of a container in Podman's list. Podman's own type
// (pkg/domain/entities/types) would bring half of Podman into the agent.
type listed struct {
	ID, ImageID, Pod string
	State            string
	IsInfra          bool
	Labels           map[string]string
	Created          time.Time
	StartedAt        int64 // seconds of Unix time
	ExitCode         int32
	Pid              int
}

// isPersons says that nobody but a person has made the container: ours are in pods.
func (c listed) isPersons() bool { return c.Pod == "" }

// exit is what the list does not say of a container that has ended. It is kept:
// an inspect costs as much as a list.
type exit struct {
	started             int64 // of the run that it tells of, as the list has it
	startedAt, finished time.Time
	oomKilled           bool
	err                 string
	message             string
}

// state is the container as listed, looked up more closely when it has ended.
func (r *Runtime) state(ctx context.Context, c listed) (container.State, error) {
	restarts, _ := strconv.Atoi(c.Labels[LabelRestarts])
	s := container.State{
		ID: c.ID, PodUID: c.Labels[LabelPodUID], Name: c.Labels[LabelContainer], Restarts: restarts,
		Phase: phase(c.State), Image: c.Labels[LabelImage], ImageID: c.ImageID, Hash: c.Labels[LabelHash], Sandbox: c.Labels[LabelSandbox],
		Devices:   labelledDevices(c.Labels),
		CreatedAt: c.Created, StartedAt: unixTime(c.StartedAt), PID: c.Pid,
	}
	if s.Phase != container.Exited {
		return s, nil
	}
	e, err := r.exit(ctx, c)
	if err != nil {
		return s, err
	}
	s.ExitCode, s.PID = int(c.ExitCode), 0
	s.StartedAt, s.FinishedAt = e.startedAt, e.finished
	s.OOMKilled, s.Error, s.TerminationMessage = e.oomKilled, e.err, e.message
	return s, nil
}

func (r *Runtime) exit(ctx context.Context, c listed) (exit, error) {
	r.mu.Lock()
	e, ok := r.exits[c.ID]
	r.mu.Unlock()
	if ok && e.started == c.StartedAt {
		return e, nil
	}
	data, err := r.inspect(ctx, c.ID)
	if err != nil {
		return exit{}, err
	}
	e = exit{started: c.StartedAt, startedAt: data.State.StartedAt, finished: data.State.FinishedAt,
		oomKilled: data.State.OOMKilled, err: data.State.Error, message: r.message(c.Labels)}
	if e.message == "" && c.ExitCode != 0 && c.Labels[LabelLogMessage] == "true" {
		e.message = logMessage(ctx, data)
	}
	if data.State.Status == define.ContainerStateExited.String() { // not "stopped": more is to come
		r.mu.Lock()
		r.exits[c.ID] = e
		r.mu.Unlock()
	}
	return e, nil
}

// forgetExits drops what is known of containers other than ids.
func (r *Runtime) forgetExits(ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.exits {
		if !slices.Contains(ids, id) {
			delete(r.exits, id)
		}
	}
}

func (r *Runtime) inspect(ctx context.Context, id string) (define.InspectContainerData, error) {
	var data define.InspectContainerData
	err := r.call(ctx, request{method: http.MethodGet, endpoint: "/containers/%s/json", path: []string{id}}, &data)
	if err == nil && data.State == nil {
		data.State = &define.InspectContainerState{}
	}
	return data, err
}

// phase maps Podman's states. Paused counts as running: its processes are there.
func phase(state string) container.Phase {
	switch state {
	case "running", "paused", "stopping":
		return container.Running
	case "exited", "stopped", "removing":
		return container.Exited
	}
	return container.Created // created, configured, initialized
}

func unixTime(seconds int64) time.Time {
	if seconds <= 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}
