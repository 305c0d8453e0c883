package container

import (
	"errors"
	"fmt"
)

// What the runtime's errors wrap, so that the pod workers can choose a reason
// by errors.Is. The text of the wrapping error is for a person.
var (
	// ErrNotFound: the engine has no such pod or container (any more).
	ErrNotFound = errors.New("no such pod or container")
	// ErrChanged: a container of this name exists but was made from another
	// Hash; it has to be removed before the wanted one can be made.
	ErrChanged = errors.New("the existing container was made from another spec")
	// ErrNoSuchCommand: the start failed because the command is not in the
	// image (exit code 127 in Kubernetes' status).
	ErrNoSuchCommand = errors.New("command not found in the image")
	// ErrCannotExecute: the start failed because the command may not be
	// executed, or is for another architecture (exit code 126).
	ErrCannotExecute = errors.New("command cannot be executed")
	// ErrCannotStart: the engine refused to start the container for another
	// reason of its own; trying again at once is of no use (exit code 128).
	ErrCannotStart = errors.New("container cannot be started")
	// ErrUnavailable: the engine's service did not answer or went away during
	// the call. What the call did is unknown; repeating it is safe.
	ErrUnavailable = errors.New("the container engine's service is unavailable")

	// ErrInvalidImageName: the reference cannot be parsed (InvalidImageName).
	ErrInvalidImageName = errors.New("invalid image name")
	// ErrImageNotFound: the registry, or this node, has no such image or tag.
	ErrImageNotFound = errors.New("image not found")
	// ErrImageDamaged: the image is known, and a layer of it is missing or cannot
	// be read. It has to be removed before a pull fetches that layer again.
	ErrImageDamaged = errors.New("image is damaged")
	// ErrNoRoom: the node's disk takes no more. What then looks like damage may be
	// none, and what is removed cannot be fetched again.
	ErrNoRoom = errors.New("the node's disk is full")
	// ErrUnauthorized: the registry wants other credentials, or hides the image.
	ErrUnauthorized = errors.New("not authorised to pull the image")
	// ErrImageCorrupt: what the registry sent is not what its digest says.
	ErrImageCorrupt = errors.New("the registry sent other data than the image's digest says: push the image anew, or pull it from another registry")
	// ErrRegistryUnavailable: the registry cannot be reached or answers with an
	// error of its own; trying later may help.
	ErrRegistryUnavailable = errors.New("image registry is unavailable")
)

// MissingError says which ConfigMap or Secret, or which key of one, a volume
// or an environment needs and does not find. errors.As finds it.
type MissingError struct {
	Kind, Namespace, Name string // "ConfigMap" or "Secret"
	Key                   string // empty: the object itself is missing
}

// Error names the object as the kubelet's events do.
func (e *MissingError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("%s %q not found in namespace %q", e.Kind, e.Name, e.Namespace)
	}
	return fmt.Sprintf("%s %q in namespace %q has no key %q", e.Kind, e.Name, e.Namespace, e.Key)
}
