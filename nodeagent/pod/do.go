//lint:file-ignore ST1005 these are the kubelet's own words, which people and tools look for

package pod

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/network/netapi"
)

// doAll takes steps in order. A failure ends the steps of its container, or
// all of them when it is the pod's. Stops, and the pod's surroundings, are done
// side by side.
func (w *worker) doAll(ctx context.Context, d Desired, steps []Step) error {
	w.made = map[string]string{}
	if steps[0].Action == StopContainer {
		return w.stopAll(ctx, d, steps)
	}
	around := 0
	for around < len(steps) && steps[around].surrounds() {
		around++
	}
	if err := w.surround(ctx, d, steps[:around]); err != nil {
		return err
	}
	return w.doEach(ctx, d, steps[around:])
}

// surround takes steps that do not need each other side by side: setting up a
// network costs as much as Podman's creation of the pod.
func (w *worker) surround(ctx context.Context, d Desired, steps []Step) error {
	errs := make([]error, len(steps))
	var group sync.WaitGroup
	for i, step := range steps {
		group.Go(func() { errs[i] = w.do(ctx, d, step) })
	}
	group.Wait()
	for i, err := range errs {
		if err != nil {
			return w.settle(ctx, d, steps[i], err)
		}
		w.succeeded(steps[i])
	}
	return nil
}

func (w *worker) doEach(ctx context.Context, d Desired, steps []Step) error {
	failed := map[string]bool{}
	for _, step := range steps {
		if failed[step.Container] {
			continue
		}
		err := w.do(ctx, d, step)
		if err == nil {
			w.succeeded(step)
			continue
		}
		if err := w.settle(ctx, d, step, err); err != nil {
			return err
		}
		failed[step.Container] = true
	}
	return nil
}

// settle notes a step's failure, and returns it if it ends the turn: it is the
// pod's, or nobody's fault.
func (w *worker) settle(ctx context.Context, d Desired, step Step, err error) error {
	if ctx.Err() != nil || errors.Is(err, container.ErrUnavailable) || errors.Is(err, context.Canceled) {
		return err
	}
	w.failed(d, step, err)
	if step.Container == "" {
		return err
	}
	return nil
}

// stopAll stops containers side by side, and then takes the other steps in the
// next turn.
func (w *worker) stopAll(ctx context.Context, d Desired, steps []Step) error {
	ctx, release := w.interruptible(ctx, d)
	defer release()
	errs := make([]error, len(steps))
	var group sync.WaitGroup
	for i, step := range steps {
		if step.Action != StopContainer {
			continue
		}
		w.event(d, step.Container, corev1.EventTypeNormal, "Killing", step.Why)
		group.Go(func() { errs[i] = w.stopContainer(ctx, d, step) })
	}
	group.Wait()
	err := errors.Join(errs...)
	if err != nil && ctx.Err() == nil && !errors.Is(err, container.ErrUnavailable) {
		w.failed(d, Step{Action: StopContainer}, err)
	}
	return err
}

// interruptible returns a context that ends when what is desired now overtakes
// d, by which the step was planned.
func (w *worker) interruptible(ctx context.Context, d Desired) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	w.mu.Lock()
	w.interrupt = cancel
	if overtakes(d, w.desired) {
		cancel()
	}
	w.mu.Unlock()
	return ctx, func() {
		w.mu.Lock()
		w.interrupt = nil
		w.mu.Unlock()
		cancel()
	}
}

// do takes one step. What the kubelet has a reason for comes as a *Failure.
func (w *worker) do(ctx context.Context, d Desired, step Step) error {
	cfg := &w.set.cfg
	if step.interruptible() {
		var release func()
		ctx, release = w.interruptible(ctx, d)
		defer release()
	}
	switch step.Action {
	case Attach:
		return w.attach(ctx, d)
	case Mount:
		return w.mount(ctx, d)
	case CreatePod:
		return w.createPod(ctx, d)
	case PullImage:
		return w.pull(ctx, d, step)
	case CreateContainer:
		return w.create(ctx, d, step)
	case StartContainer:
		return w.startContainer(ctx, d, step)
	case PostStart:
		return w.postStart(ctx, d, step)
	case StopContainer:
		return w.stopContainer(ctx, d, step)
	case RemoveContainer:
		return cfg.Containers.RemoveContainer(ctx, step.ID)
	case RemovePod:
		return cfg.Pods.Remove(ctx, w.uid)
	case Detach:
		return w.detach(ctx)
	case HaltPod:
		return cfg.Pods.Halt(ctx, w.uid)
	case Unmount:
		return w.unmount(ctx)
	case Forget:
		if d.Pod != nil { // else rest says it
			cfg.Reporter.Gone(w.uid, d.Pod)
		}
		w.memory.Gone = true
		return nil
	}
	panic("unknown action " + string(step.Action))
}

func (w *worker) attach(ctx context.Context, d Desired) error {
	if d.Pod.Spec.HostNetwork {
		w.memory.Attached, w.memory.Released = true, false
		return nil
	}
	path, err := w.set.cfg.Network.Attach(ctx, w.uid, d.Address, hostPorts(d.Pod))
	if errors.Is(err, netapi.ErrHostPort) {
		return &Failure{Reason: "NetworkNotReady", Event: "HostPortConflict", Err: fmt.Errorf("Failed to create pod sandbox: %w", err)}
	}
	if err != nil {
		return &Failure{Reason: "NetworkNotReady", Event: "FailedCreatePodSandBox", Err: fmt.Errorf("Failed to create pod sandbox: cannot set up the network: %w", err)}
	}
	w.netns = path
	w.memory.Attached, w.memory.Released = true, false
	return nil
}

func (w *worker) detach(ctx context.Context) error {
	if err := w.set.cfg.Network.Detach(ctx, w.uid); err != nil {
		return err
	}
	w.set.cfg.Devices.Release(w.uid) // nothing of the pod runs any more
	w.memory.Attached, w.memory.Released = false, true
	return nil
}

func (w *worker) mount(ctx context.Context, d Desired) error {
	mounts, err := w.set.cfg.Volumes.Mount(ctx, d.Pod, w.set.cfg.Source)
	if err != nil {
		return &Failure{Reason: "FailedMount", Event: "FailedMount", Err: err}
	}
	w.mounts = mounts
	w.memory.Mounted = true
	return nil
}

func (w *worker) createPod(ctx context.Context, d Desired) error {
	w.tellSandboxChange(d)
	defer w.slot()()
	err := w.set.cfg.Pods.Create(ctx, container.PodSpec{
		UID: w.uid, Namespace: d.Pod.Namespace, Name: d.Pod.Name, Hostname: hostname(d.Pod), SharePID: isTrue(d.Pod.Spec.ShareProcessNamespace),
	})
	if err != nil {
		return &Failure{Reason: "CreatePodSandboxError", Event: "FailedCreatePodSandBox", Err: fmt.Errorf("Failed to create pod sandbox: %w", err)}
	}
	return nil
}

// pull makes sure of a container's image, as its pull policy says.
func (w *worker) pull(ctx context.Context, d Desired, step Step) error {
	spec := specOf(d.Pod, step.Container)
	images := w.set.cfg.Images
	if spec.ImagePullPolicy != corev1.PullAlways || step.Kept {
		image, found, err := images.Image(ctx, spec.Image)
		switch {
		case errors.Is(err, container.ErrInvalidImageName):
			return &Failure{Reason: ReasonInvalidImageName, Event: "InspectFailed", Err: fmt.Errorf("Failed to apply default image tag %q: %w", spec.Image, err)}
		case errors.Is(err, container.ErrImageDamaged):
			return w.mendImage(ctx, d, spec, err)
		case err != nil:
			return &Failure{Reason: "ImageInspectError", Event: "InspectFailed", Err: err}
		case found:
			w.event(d, spec.Name, corev1.EventTypeNormal, "Pulled", fmt.Sprintf("Container image %q already present on machine", spec.Image))
			return w.keepImage(spec, image)
		case spec.ImagePullPolicy == corev1.PullNever:
			return &Failure{Reason: ReasonErrImageNeverPull, Event: "ErrImageNeverPull", Err: fmt.Errorf("Container image %q is not present with pull policy of Never", spec.Image)}
		}
	}
	w.event(d, spec.Name, corev1.EventTypeNormal, "Pulling", fmt.Sprintf("Pulling image %q", spec.Image))
	started := w.set.cfg.Now()
	shown, unusable := credentials(ctx, d.Pod, spec.Image, w.set.cfg.Source)
	if len(unusable) > 0 {
		w.event(d, spec.Name, corev1.EventTypeWarning, "FailedToRetrieveImagePullSecret", fmt.Sprintf(
			"Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed.", strings.Join(unusable, ", ")))
	}
	image, err := images.Pull(ctx, spec.Image, shown)
	switch {
	case errors.Is(err, container.ErrImageDamaged):
		return w.mendImage(ctx, d, spec, err)
	case errors.Is(err, container.ErrInvalidImageName):
		return &Failure{Reason: ReasonInvalidImageName, Event: "InspectFailed", Err: fmt.Errorf("Failed to apply default image tag %q: %w", spec.Image, err)}
	case err != nil:
		return &Failure{Reason: ReasonErrImagePull, Event: "Failed", Err: fmt.Errorf("Failed to pull image %q: %w", spec.Image, err)}
	}
	took := w.set.cfg.Now().Sub(started).Round(time.Millisecond)
	w.event(d, spec.Name, corev1.EventTypeNormal, "Pulled", fmt.Sprintf("Successfully pulled image %q in %s", spec.Image, took))
	return w.keepImage(spec, image)
}

// keepImage notes what a container is made from, if this machine can run it.
func (w *worker) keepImage(spec *corev1.Container, image container.Image) error {
	if !runs(runtime.GOARCH, image.Architecture) {
		return &Failure{Reason: ReasonErrImagePull, Event: "Failed", Err: fmt.Errorf(
			"Failed to pull image %q: it is for %s, and this node is %s: use an image for %s, or choose nodes by the label kubernetes.io/arch",
			spec.Image, image.Architecture, runtime.GOARCH, runtime.GOARCH)}
	}
	if w.images == nil {
		w.images = map[string]container.Image{}
	}
	w.images[spec.Name] = image
	return nil
}

// runs says whether a machine runs an image's programs: its own architecture's and
// the smaller one's of the same family. What an image does not say is tried.
func runs(machine, image string) bool {
	return image == "" || image == machine || machine == "arm64" && image == "arm" || machine == "amd64" && image == "386"
}

func (w *worker) create(ctx context.Context, d Desired, step Step) error {
	spec := specOf(d.Pod, step.Container)
	hosts, err := w.writeHosts(d)
	if err != nil {
		return &Failure{Reason: ReasonCreateContainerError, Event: "Failed", Err: err}
	}
	devices, err := w.set.cfg.Devices.Allocate(ctx, d.Pod, spec)
	if err != nil {
		return &Failure{Reason: ReasonCreateConfigError, Event: "DeviceUnavailable", Err: err}
	}
	made, err := compose(ctx, d, spec, step.Restarts, surroundings{
		netns: w.netns, mounts: w.mounts[spec.Name], image: w.images[spec.Name], hosts: hosts,
		resolver: w.set.cfg.Resolver(d.Pod.Spec.HostNetwork), hostIP: w.set.cfg.HostIP(), source: w.set.cfg.Source,
		allocatable: w.set.cfg.Allocatable(), sandbox: w.memory.Sandbox, devices: devices,
	})
	if err != nil {
		return &Failure{Reason: ReasonCreateConfigError, Event: "Failed", Err: err}
	}
	if made.Mounts, err = w.parts(ctx, made); err != nil {
		return &Failure{Reason: ReasonCreateConfigError, Event: "Failed", Err: err}
	}
	w.tellUnenforced(d, spec)
	defer w.slot()()
	id, err := w.set.cfg.Containers.CreateContainer(ctx, made)
	if err != nil {
		return &Failure{Reason: ReasonCreateContainerError, Event: "Failed", Err: err}
	}
	w.made[spec.Name] = id
	w.event(d, spec.Name, corev1.EventTypeNormal, "Created", "Created container: "+spec.Name)
	return nil
}

func (w *worker) startContainer(ctx context.Context, d Desired, step Step) error {
	id := step.ID
	if id == "" {
		id = w.made[step.Container]
	}
	if _, err := w.writeHosts(d); err != nil { // gone with /run, where the machine booted anew
		return &Failure{Reason: ReasonRunContainerError, Event: "Failed", Err: err}
	}
	if err := w.remakeParts(ctx, d, step.Container); err != nil {
		return &Failure{Reason: ReasonRunContainerError, Event: "Failed", Err: err}
	}
	defer w.slot()()
	if err := w.set.cfg.Containers.StartContainer(ctx, id); err != nil {
		return &Failure{Reason: ReasonRunContainerError, Event: "Failed", Err: err}
	}
	w.event(d, step.Container, corev1.EventTypeNormal, "Started", "Started container "+step.Container)
	return nil
}

func (w *worker) unmount(ctx context.Context) error {
	if err := w.set.cfg.Volumes.Unmount(ctx, w.uid); err != nil {
		return err
	}
	return os.RemoveAll(w.dir())
}

func (w *worker) dir() string { return filepath.Join(w.set.cfg.Dir, w.uid) }

// writeHosts makes sure of the pod's /etc/hosts and returns its path.
func (w *worker) writeHosts(d Desired) (string, error) {
	path := filepath.Join(w.dir(), "etc-hosts")
	text := hostsFile(d.Pod, d.Address)
	if d.Pod.Spec.HostNetwork {
		text = nodeHosts(d.Pod)
	}
	if old, err := os.ReadFile(path); err == nil && string(old) == text {
		return path, nil
	}
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		// An engine makes a directory of what it is to mount and does not find.
		if err := os.RemoveAll(path); err != nil {
			return "", err
		}
	}
	if err := os.MkdirAll(w.dir(), 0o700); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, []byte(text), 0o644)
}

// slot waits for its turn among the creations and starts of all pods, and
// returns what gives the turn back.
func (w *worker) slot() func() {
	w.set.busy <- struct{}{}
	return func() { <-w.set.busy }
}

func specOf(pod *corev1.Pod, name string) *corev1.Container {
	m, found := memberOf(pod, name)
	if !found {
		panic("a step names container " + name + ", which the pod has not")
	}
	return m.spec
}
