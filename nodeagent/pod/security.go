package pod

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/container"
)

// security merges the pod's security context with the container's, which has
// precedence, and looks at the image's user where neither names one. The errors
// are the kubelet's, without a pod's name.
func security(pod *corev1.Pod, spec *corev1.Container, imageUser string) (container.Security, error) {
	all, own := pod.Spec.SecurityContext, spec.SecurityContext
	if all == nil {
		all = &corev1.PodSecurityContext{}
	}
	if own == nil {
		own = &corev1.SecurityContext{}
	}
	user, group := either(own.RunAsUser, all.RunAsUser), either(own.RunAsGroup, all.RunAsGroup)
	s := container.Security{
		User:         userOf(user, group, imageUser),
		ReadOnlyRoot: isTrue(own.ReadOnlyRootFilesystem),
	}
	if profile := either(own.SeccompProfile, all.SeccompProfile); profile != nil {
		s.Unconfined = profile.Type == corev1.SeccompProfileTypeUnconfined
	}
	if own.Capabilities != nil {
		s.CapAdd, s.CapDrop = capabilities(own.Capabilities.Add), capabilities(own.Capabilities.Drop)
	}
	s.NoNewPrivileges = own.AllowPrivilegeEscalation != nil && !*own.AllowPrivilegeEscalation
	s.Groups = slices.Clone(all.SupplementalGroups)
	if all.FSGroup != nil && !slices.Contains(s.Groups, *all.FSGroup) {
		s.Groups = append(s.Groups, *all.FSGroup)
	}
	if isTrue(either(own.RunAsNonRoot, all.RunAsNonRoot)) {
		return s, nonRoot(user, imageUser)
	}
	return s, nil
}

func either[T any](own, all *T) *T {
	if own != nil {
		return own
	}
	return all
}

func isTrue(b *bool) bool { return b != nil && *b }

// userOf is "user:group" in the engine's form; empty: the image's as it is.
func userOf(user, group *int64, image string) string {
	if user == nil && group == nil {
		return ""
	}
	name, _, _ := strings.Cut(image, ":")
	if user != nil {
		name = strconv.FormatInt(*user, 10)
	}
	if name == "" {
		name = "0"
	}
	if group != nil {
		name += ":" + strconv.FormatInt(*group, 10)
	}
	return name
}

// nonRoot refuses user 0, and a user of whom that can not be told.
func nonRoot(user *int64, image string) error {
	name, _, _ := strings.Cut(image, ":")
	uid, err := strconv.ParseInt(name, 10, 64)
	switch {
	case user != nil && *user == 0:
		return fmt.Errorf("container's runAsUser breaks non-root policy: set runAsUser to another user than 0")
	case user != nil:
		return nil
	case name == "" || err == nil && uid == 0 || name == "root":
		return fmt.Errorf("container has runAsNonRoot and image will run as root: set runAsUser to another user than 0")
	case err != nil:
		return fmt.Errorf("container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is non-root: set runAsUser", name)
	}
	return nil
}

func capabilities(all []corev1.Capability) []string {
	var names []string
	for _, c := range all {
		names = append(names, strings.TrimPrefix(strings.ToUpper(string(c)), "CAP_"))
	}
	return names
}
