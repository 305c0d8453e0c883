package runtime

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/containers/podman/v5/libpod/define"

	"bramble.dev/bramble/nodeagent/container"
)

// Podman's API tells its refusals apart by text alone: the cause, which is the
// text of one of its own sentinels, and the OCI runtime's words in the message.

// isConflict says that the name is taken; 4.3.1 answers 500 for containers and
// 409 for pods.
func isConflict(err error) bool {
	m := refusal(err)
	return m != nil && (m.ResponseCode == http.StatusConflict ||
		strings.Contains(m.Because+m.Message, "already in use") || strings.Contains(m.Because, "already exists"))
}

func isStateError(err error) bool {
	m := refusal(err)
	return m != nil && (m.Because == define.ErrCtrStateInvalid.Error() || m.ResponseCode == http.StatusConflict)
}

// createError classifies an error of a container's creation.
func createError(err error) error {
	m := refusal(err)
	switch {
	case m == nil:
		return err
	case strings.Contains(m.Because, "image not known"):
		return fmt.Errorf("%w: %s", container.ErrImageNotFound, m.Message)
	case m.ResponseCode == http.StatusNotFound || m.Because == define.ErrNoSuchPod.Error():
		return fmt.Errorf("%w: %s", container.ErrNotFound, m.Message)
	}
	return err
}

// startError classifies an error of a container's start. Both runc and crun say
// "exec" when it is the command that is at fault, and something else when it is
// a mount or a namespace.
func startError(err error) error {
	m := refusal(err)
	if m == nil {
		return err
	}
	text := strings.ToLower(m.Message)
	command := strings.Contains(text, `exec: "`) || strings.Contains(text, "executable file") || strings.Contains(text, "exec container process")
	switch {
	case m.ResponseCode == http.StatusNotFound:
		return fmt.Errorf("%w: %s", container.ErrNotFound, m.Message)
	case command && (strings.Contains(text, "permission denied") || strings.Contains(text, "exec format error") || strings.Contains(text, "is a directory")):
		return fmt.Errorf("%w: %s", container.ErrCannotExecute, ociWords(m.Message))
	case command:
		return fmt.Errorf("%w: %s", container.ErrNoSuchCommand, ociWords(m.Message))
	case isOCI(m.Because):
		return fmt.Errorf("%w: %s", container.ErrCannotStart, ociWords(m.Message))
	}
	return err
}

func isOCI(cause string) bool {
	return cause == define.ErrOCIRuntime.Error() || cause == define.ErrOCIRuntimeNotFound.Error() ||
		cause == define.ErrOCIRuntimePermissionDenied.Error()
}

// ociWords leaves out Podman's tail, which says again what our sentinel says.
func ociWords(message string) string {
	for _, tail := range []error{define.ErrOCIRuntimeNotFound, define.ErrOCIRuntimePermissionDenied, define.ErrOCIRuntime} {
		message = strings.TrimSuffix(message, ": "+tail.Error())
	}
	return message
}
