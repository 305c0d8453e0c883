package nodeagent

import (
	"context"
	"fmt"
	"io"

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
	current, before := pod.Latest(engine, containerName)
	switch {
	case previous && current.Phase == container.Exited && before.ID == "":
		return current.ID, nil // it ended and was not started again yet
	case previous && before.ID == "":
		return "", apierrors.NewBadRequest(fmt.Sprintf("previous terminated container %q in pod %q not found", containerName, name))
	case previous:
		return before.ID, nil
	case current.ID != "" && current.StartedAt.IsZero() && current.Phase == container.Created && before.ID != "":
		return before.ID, nil
	case current.ID == "" || current.StartedAt.IsZero() && current.Phase == container.Created:
		return "", apierrors.NewBadRequest(fmt.Sprintf("container %q in pod %q is waiting to start", containerName, name))
	}
	return current.ID, nil
}

// logs is the engine's logs for the log handler.
type logs struct{ engine *runtime.Runtime }

// Logs follows stream.Logs.
func (l *logs) Logs(ctx context.Context, id string, o stream.LogOptions, w io.Writer) error {
	return l.engine.Logs(ctx, id, runtime.LogOptions(o), w)
}
