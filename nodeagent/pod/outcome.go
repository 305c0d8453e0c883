package pod

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// succeeded forgets the failures that a step's success ends.
func (w *worker) succeeded(step Step) {
	retry, known := w.memory.Retries[step.Container]
	if !known || retry.Reason == "" {
		return
	}
	over := step.Action == StartContainer || step.Container == "" ||
		step.Action == PullImage && (retry.Reason == ReasonErrImagePull || retry.Reason == ReasonErrImageNeverPull)
	if over {
		delete(w.memory.Retries, step.Container)
	}
}

// failed notes why a step failed, makes its event, and lets the container, or
// the pod, wait.
func (w *worker) failed(d Desired, step Step, err error) {
	var f *Failure
	if !errors.As(err, &f) {
		f = &Failure{Reason: "FailedKillPod", Event: "FailedKillPod", Err: fmt.Errorf("error killing pod: %w", err)}
	}
	now := w.set.cfg.Now()
	if w.memory.Retries == nil {
		w.memory.Retries = map[string]Retry{}
	}
	w.memory.Retries[step.Container] = afterFailure(w.memory.Retries[step.Container], f, now)
	message := f.Error()
	if f.Event == "Failed" && f.Reason != ReasonErrImagePull {
		message = "Error: " + message
	}
	w.event(d, step.Container, corev1.EventTypeWarning, f.Event, message)
	if f.Reason == ReasonErrImagePull {
		w.event(d, step.Container, corev1.EventTypeWarning, "Failed", "Error: "+ReasonErrImagePull)
	}
	w.set.cfg.Log.Info("a step failed", "pod", w.name(d), "step", step.String(), "err", err)
}

// name is the pod as people know it.
func (w *worker) name(d Desired) string {
	if d.Pod == nil {
		return w.uid
	}
	return d.Pod.Namespace + "/" + d.Pod.Name
}

func backOffMessage(pod *corev1.Pod, name string) string {
	return fmt.Sprintf("Back-off restarting failed container %s in pod %s_%s(%s)", name, pod.Name, pod.Namespace, pod.UID)
}
