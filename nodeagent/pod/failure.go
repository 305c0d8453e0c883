package pod

import (
	"errors"
	"fmt"
	"strings"
)

// ErrUnavailable means that the engine or the network process does not answer:
// nothing is wrong with the pod, and the step is tried again soon. Adapters
// wrap it.
var ErrUnavailable = errors.New("the container engine does not answer")

// ErrInvalidImage means that an image reference cannot be parsed. Adapters wrap it.
var ErrInvalidImage = errors.New("invalid image name")

// MissingError says that a pod refers to an object that does not exist. Its text
// is the kubelet's.
type MissingError struct {
	Kind, Namespace, Name string
	Key                   string // of the object; empty: the whole object is missing
}

func (e *MissingError) Error() string {
	if e.Key != "" {
		return fmt.Sprintf("couldn't find key %s in %s %s/%s", e.Key, e.Kind, e.Namespace, e.Name)
	}
	return fmt.Sprintf("%s %q not found", strings.ToLower(e.Kind), e.Name)
}

// The kubelet's reasons for a container that waits.
const (
	ReasonContainerCreating    = "ContainerCreating"
	ReasonErrImagePull         = "ErrImagePull"
	ReasonImagePullBackOff     = "ImagePullBackOff"
	ReasonErrImageNeverPull    = "ErrImageNeverPull"
	ReasonInvalidImageName     = "InvalidImageName"
	ReasonCreateConfigError    = "CreateContainerConfigError"
	ReasonCreateContainerError = "CreateContainerError"
	ReasonRunContainerError    = "RunContainerError"
	ReasonCrashLoopBackOff     = "CrashLoopBackOff"
)

// The kubelet's reasons for a container that ended, and for a pod.
const (
	ReasonCompleted        = "Completed"
	ReasonError            = "Error"
	ReasonOOMKilled        = "OOMKilled"
	ReasonStartError       = "StartError"
	ReasonStatusUnknown    = "ContainerStatusUnknown"
	ReasonDeadlineExceeded = "DeadlineExceeded"
)

// Failure is why a step could not be done, in the kubelet's words: Reason is
// what the container's status says, Event the event's reason.
type Failure struct {
	Reason, Event string
	Err           error
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }
