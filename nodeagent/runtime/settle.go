package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"bramble.dev/bramble/nodeagent/container"
)

// checkRunning is how often the processes of running containers are looked for.
const checkRunning = 10 * time.Second

// unseenExit is the code of a container whose end nobody saw (the kubelet's).
const unseenExit = "137"

// settle says whether Podman takes a container for running that is not, and puts
// that right. conmon tells Podman of an end; when conmon was killed itself (the
// kernel does so where memory is short), Podman waits for ever. The file that
// conmon would have left is written in its place.
//
// A container that goes on without its conmon is ended first: its output is lost,
// nobody can reach it by exec or a probe, and its exit code will not be known.
// Kubernetes' runtimes end it too. An infra container has nothing of that to lose.
func (r *Runtime) settle(ctx context.Context, c listed) (bool, error) {
	if phase(c.State) != container.Running || alive(c.Pid) && (c.IsInfra || watched(c.Pid)) {
		return false, nil
	}
	data, err := r.inspect(ctx, c.ID)
	if notFound(err) {
		return false, nil
	}
	if err != nil || phase(data.State.Status) != container.Running || alive(data.State.ConmonPid) {
		return false, err
	}
	if alive(data.State.Pid) {
		if data.State.Pid != c.Pid || data.State.ConmonPid <= 0 {
			return false, nil
		}
		r.config.Log.Warn("a container's conmon was killed, and the container is ended", "pod", c.Labels[LabelPodName], "container", c.Labels[LabelContainer])
		if err := kill(ctx, c.Pid); err != nil {
			return false, fmt.Errorf("cannot end container %s, whose conmon was killed: %w", c.ID, err)
		}
	}
	err = leaveExit(filepath.Join(r.config.RuntimeDir, "libpod", "tmp", "exits"), c.ID)
	if errors.Is(err, fs.ErrExist) {
		return false, nil // Podman has not read it yet
	}
	if err != nil {
		return false, fmt.Errorf("cannot tell podman that container %s has ended: %w", c.ID, err)
	}
	r.config.Log.Warn("a container's conmon was killed, and the container has ended unseen", "pod", c.Labels[LabelPodName], "container", c.Labels[LabelContainer])
	return true, nil
}

// watched says whether a container's first process is a conmon's child, as it is
// until conmon ends. One that is gone is nobody's.
func watched(pid int) bool { return program(parentOf(pid)) == "conmon" }

// kill ends a process that is no child of ours, and returns when it is gone.
func kill(ctx context.Context, pid int) error {
	p, err := openProcess(pid)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer p.close()
	if err := p.signal(unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	for ctx.Err() == nil {
		if p.wait(ctx, endLimit) {
			return nil
		}
	}
	return ctx.Err()
}

// leaveExit writes a container's exit file as conmon does: whole or not at all.
func leaveExit(dir, id string) error {
	f, err := os.CreateTemp(dir, ".bramble-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(unseenExit)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), filepath.Join(dir, id))
}

// running is the process of a container that Podman has as running.
type running struct {
	pid   int
	uid   string // of its pod
	infra bool
}

// noteRunning remembers what Podman's list has as running: of one pod, or by ""
// of all.
func (r *Runtime) noteRunning(uid string, all []listed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, p := range r.running {
		if uid == "" || p.uid == uid {
			delete(r.running, id)
		}
	}
	for _, c := range all {
		if phase(c.State) == container.Running && c.Pid > 0 {
			r.running[c.ID] = running{c.Pid, c.Labels[LabelPodUID], c.IsInfra}
		}
	}
}

// checkProcesses passes on, until ctx ends, an event for each container whose
// process, or that one's conmon, is not there any more though nobody has said so.
// It asks the kernel alone.
func (r *Runtime) checkProcesses(ctx context.Context, events chan<- container.Event) {
	ticker := time.NewTicker(checkRunning)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for id, p := range r.vanished() {
			if !pass(ctx, events, container.Event{PodUID: p.uid, ContainerID: id, What: "vanished"}) {
				return
			}
		}
	}
}

func (r *Runtime) vanished() map[string]running {
	r.mu.Lock()
	defer r.mu.Unlock()
	gone := map[string]running{}
	for id, p := range r.running {
		if !alive(p.pid) || !p.infra && !watched(p.pid) {
			gone[id] = p
		}
	}
	return gone
}
