package runtime

import (
	"errors"
	"fmt"
	"strings"

	"bramble.dev/bramble/nodeagent/container"
)

// advice says what a person can do about an error of a pull from host, for which
// that many credentials were tried; it is empty where the error says it, or nobody can.
func advice(err error, host string, tried int) string {
	text := strings.ToLower(err.Error())
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	switch {
	case errors.Is(err, container.ErrUnavailable):
		return ""
	case errors.Is(err, container.ErrUnauthorized) && tried > 0:
		return fmt.Sprintf("no Secret in the pod's imagePullSecrets has a user and a password that %s takes for this image; or there is no image of this name", host)
	case errors.Is(err, container.ErrUnauthorized):
		return fmt.Sprintf("make a Secret by kubectl create secret docker-registry --docker-server=%s and name it in the pod's imagePullSecrets; or there is no image of this name", host)
	case errors.Is(err, container.ErrImageNotFound):
		return "check the image's name and tag"
	case errors.Is(err, container.ErrInvalidImageName):
		return "write it as HOST/NAME:TAG, in small letters"
	case errors.Is(err, errStalled), has("unexpected eof", "connection reset"):
		return fmt.Sprintf("it is tried again; if that does not help, check the link between this node and %s", host)
	case has("x509:", "tls:"):
		return fmt.Sprintf("put the authority that signed the registry's certificate into ~/.config/containers/certs.d/%s/ca.crt of this node's user, or give the registry a certificate for this address; look at the node's clock too", host)
	case has("server gave http response"):
		return fmt.Sprintf("%s speaks no TLS: give it a certificate, or write insecure = true for it into ~/.config/containers/registries.conf of this node's user", host)
	case has("toomanyrequests", "too many requests"):
		return "the registry limits how much may be pulled: wait, or pull as a user by imagePullSecrets"
	case errors.Is(err, container.ErrRegistryUnavailable):
		return fmt.Sprintf("check the address %s in the image's name, and whether this node reaches it", host)
	case errors.Is(err, errTooLarge):
		return fmt.Sprintf("make room on this node's disk, or, if the image is not meant to be that large, see what %s sends: podman image prune --all, as the node's user, removes the images that no container uses", host)
	case has("no space left on device", "disk quota exceeded"):
		return "make room on this node's disk: podman image prune --all, as its user, removes the images that no container uses"
	}
	return ""
}

// advised is err with what to do about it.
func advised(err error, host string, tried int) error {
	if text := advice(err, host, tried); text != "" {
		return fmt.Errorf("%w; %s", err, text)
	}
	return err
}
