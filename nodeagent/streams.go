package nodeagent

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/pod"
	"bramble.dev/bramble/nodeagent/runtime"
	"bramble.dev/bramble/nodeagent/stream"
)

// finder finds containers by name for the log handler.
type finder struct{ *Agent }

// Container follows stream.Pods; its refusals are worded as the kubelet's.
func (f *finder) Container(ctx context.Context, namespace, name, containerName string, previous bool) (string, error) {
	desired, found := f.desires.find(namespace, name)
	if !found {
		return "", apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, name)
	}
	engine, err := f.engine.Get(ctx, string(desired.Pod.UID))
	if err != nil {
		return "", err
	}
	logged := pod.Logged(desired, engine, containerName, previous)
	switch {
	case logged.ID == "" && previous:
		return "", apierrors.NewBadRequest(fmt.Sprintf("previous terminated container %q in pod %q not found: it was not restarted; leave out --previous", containerName, name))
	case logged.ID == "":
		return "", apierrors.NewBadRequest(fmt.Sprintf("container %q in pod %q is waiting to start; see kubectl describe pod %[2]s", containerName, name))
	}
	return logged.ID, nil
}

// Running follows stream.Pods.
func (f *finder) Running(ctx context.Context, namespace, name, containerName string) (container.Target, error) {
	desired, found := f.desires.find(namespace, name)
	if !found {
		return container.Target{}, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, name)
	}
	engine, err := f.engine.Get(ctx, string(desired.Pod.UID))
	if err != nil {
		return container.Target{}, err
	}
	spec := containerSpec(desired.Pod, containerName)
	current, _ := pod.Latest(engine, containerName)
	switch {
	case spec == nil || current.Phase != container.Running && current.Phase != container.Exited:
		return container.Target{}, notRunning(containerName, "it is waiting to start; see kubectl describe pod "+name)
	case current.Phase == container.Exited:
		return container.Target{}, notRunning(containerName, fmt.Sprintf("it has ended with exit code %d; see kubectl logs %s -c %s", current.ExitCode, name, containerName))
	}
	return container.Target{ID: current.ID, PID: current.PID, Address: desired.Address, Spec: spec}, nil
}

// notRunning begins with the kubelet's words.
func notRunning(name, why string) error {
	return apierrors.NewBadRequest(fmt.Sprintf("container not found (%q): %s", name, why))
}

func containerSpec(p *corev1.Pod, name string) *corev1.Container {
	for _, all := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for i := range all {
			if all[i].Name == name {
				return &all[i]
			}
		}
	}
	return nil
}

// Pod follows stream.Pods.
func (f *finder) Pod(_ context.Context, namespace, name string) (stream.Pod, error) {
	desired, found := f.desires.find(namespace, name)
	switch {
	case !found:
		return stream.Pod{}, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, name)
	case !desired.Address.IsValid():
		return stream.Pod{}, apierrors.NewBadRequest(fmt.Sprintf("pod %s has no address: it has ended, or has not started yet", name))
	}
	uid := string(desired.Pod.UID)
	return stream.Pod{UID: uid, Address: desired.Address, Gone: f.desires.gone(uid)}, nil
}

// commands is the engine's commands for the exec and attach handlers.
type commands struct{ *runtime.Runtime }

// Attach follows stream.Commands.
func (c *commands) Attach(ctx context.Context, t container.Target, s container.Streams) error {
	return c.Runtime.Attach(ctx, t.ID, runtime.AttachOptions{TTY: t.Spec.TTY, Stdin: t.Spec.Stdin, Once: t.Spec.StdinOnce}, s)
}

// logs is the engine's logs for the log handler.
type logs struct{ engine *runtime.Runtime }

// Logs follows stream.Logs.
func (l *logs) Logs(ctx context.Context, id string, o stream.LogOptions, w io.Writer) error {
	return l.engine.Logs(ctx, id, runtime.LogOptions(o), w)
}
