package admission

import (
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// grantable are the capabilities that a container can be given: those that act
// inside its own namespaces. The others would need rights on the node, which a
// rootless engine has not to give, or would reach the pod's neighbours.
var grantable = []string{
	"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "NET_RAW",
	"SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT", "IPC_LOCK", "SYS_NICE", "LEASE",
}

func validatePodSecurity(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	c, p := s.SecurityContext, path.Child("securityContext")
	if c == nil {
		return nil
	}
	errs = append(errs, validateID(c.RunAsUser, p.Child("runAsUser"))...)
	errs = append(errs, validateID(c.RunAsGroup, p.Child("runAsGroup"))...)
	errs = append(errs, validateID(c.FSGroup, p.Child("fsGroup"))...)
	for i := range c.SupplementalGroups {
		errs = append(errs, validateID(&c.SupplementalGroups[i], p.Child("supplementalGroups").Index(i))...)
	}
	if c.FSGroupChangePolicy != nil {
		errs = append(errs, oneOf(*c.FSGroupChangePolicy, p.Child("fsGroupChangePolicy"), corev1.FSGroupChangeOnRootMismatch, corev1.FSGroupChangeAlways)...)
	}
	return append(errs, validateSeccomp(c.SeccompProfile, p.Child("seccompProfile"))...)
}

func validateSecurity(c *corev1.SecurityContext, p *field.Path) field.ErrorList {
	if c == nil {
		return nil
	}
	errs := validateID(c.RunAsUser, p.Child("runAsUser"))
	errs = append(errs, validateID(c.RunAsGroup, p.Child("runAsGroup"))...)
	errs = append(errs, validateSeccomp(c.SeccompProfile, p.Child("seccompProfile"))...)
	if c.Capabilities == nil {
		return errs
	}
	add := p.Child("capabilities", "add")
	for i, capability := range c.Capabilities.Add {
		if name := strings.TrimPrefix(strings.ToUpper(string(capability)), "CAP_"); !slices.Contains(grantable, name) {
			errs = append(errs, field.Forbidden(add.Index(i), string(capability)+
				" can not be given in rootless containers; those that can: "+strings.Join(grantable, ", ")))
		}
	}
	for i, capability := range c.Capabilities.Drop {
		if capability == "" {
			errs = append(errs, field.Required(p.Child("capabilities", "drop").Index(i), ""))
		}
	}
	return errs
}

func validateID(id *int64, p *field.Path) field.ErrorList {
	if id != nil && (*id < 0 || *id > math.MaxInt32) {
		return field.ErrorList{field.Invalid(p, *id, validation.InclusiveRangeError(0, math.MaxInt32))}
	}
	return nil
}

func validateSeccomp(profile *corev1.SeccompProfile, p *field.Path) field.ErrorList {
	switch {
	case profile == nil:
		return nil
	case profile.Type == corev1.SeccompProfileTypeLocalhost:
		return field.ErrorList{field.Forbidden(p.Child("type"), "profiles of the node are not supported; use RuntimeDefault")}
	case profile.LocalhostProfile != nil:
		return field.ErrorList{field.Invalid(p.Child("localhostProfile"), *profile.LocalhostProfile, "can only be set when seccomp type is Localhost")}
	}
	return oneOf(profile.Type, p.Child("type"), corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeUnconfined)
}
