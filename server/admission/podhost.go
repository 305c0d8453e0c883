package admission

import (
	"net/netip"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// withheld are paths of nodes that no container may have, nor what they are in:
// a container with one of them would have the node. The node knows more of them,
// and looks where links lead.
var withheld = []string{
	"/proc", "/run/user", "/var/run/user", "/run/podman", "/var/run/podman", "/run/docker.sock", "/var/run/docker.sock",
	"/var/lib/bramble", "/etc/bramble",
}

func validateHostPath(h *corev1.HostPathVolumeSource, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	at := p.Child("path")
	switch {
	case h.Path == "":
		errs = append(errs, field.Required(at, ""))
	case !path.IsAbs(h.Path):
		errs = append(errs, field.Invalid(at, h.Path, "must be an absolute path"))
	case slices.Contains(strings.Split(h.Path, "/"), ".."):
		errs = append(errs, field.Invalid(at, h.Path, "must not contain '..'"))
	case strings.ContainsAny(h.Path, ":\x00"):
		errs = append(errs, field.Invalid(at, h.Path, "must not contain ':' or a NUL byte"))
	default:
		for _, w := range withheld {
			if overlaps(path.Clean(h.Path), w) {
				errs = append(errs, field.Forbidden(at, "it would give the container "+w+" of its node, and with it the node; choose another directory"))
				break
			}
		}
	}
	if h.Type != nil {
		types := []corev1.HostPathType{
			corev1.HostPathUnset, corev1.HostPathDirectoryOrCreate, corev1.HostPathDirectory, corev1.HostPathFileOrCreate,
			corev1.HostPathFile, corev1.HostPathSocket, corev1.HostPathCharDev, corev1.HostPathBlockDev,
		}
		if !slices.Contains(types, *h.Type) {
			errs = append(errs, field.NotSupported(p.Child("type"), *h.Type, types))
		}
	}
	return errs
}

// overlaps says that one of two clean paths is the other or inside it.
func overlaps(a, b string) bool {
	in := func(x, y string) bool { return x == y || y == "/" || strings.HasPrefix(x, y+"/") }
	return in(a, b) || in(b, a)
}

func validateHostPort(port corev1.ContainerPort, hostNetwork bool, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if port.HostIP != "" {
		if _, err := netip.ParseAddr(port.HostIP); err != nil {
			errs = append(errs, field.Invalid(p.Child("hostIP"), port.HostIP, "must be a valid IP address"))
		}
	}
	if port.HostPort == 0 {
		return errs
	}
	for _, msg := range validation.IsValidPortNum(int(port.HostPort)) {
		errs = append(errs, field.Invalid(p.Child("hostPort"), port.HostPort, msg))
	}
	switch {
	case hostNetwork && port.HostPort != port.ContainerPort:
		errs = append(errs, field.Invalid(p.Child("hostPort"), port.HostPort, "must match `containerPort` when `hostNetwork` is true"))
	case !hostNetwork && port.Protocol == corev1.ProtocolSCTP:
		errs = append(errs, field.Forbidden(p.Child("hostPort"), "host ports of SCTP are not supported; remove it"))
	}
	return errs
}

func validateHostAliases(aliases []corev1.HostAlias, fp *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, alias := range aliases {
		p := fp.Index(i)
		if _, err := netip.ParseAddr(alias.IP); err != nil {
			errs = append(errs, field.Invalid(p.Child("ip"), alias.IP, "must be a valid IP address"))
		}
		for j, name := range alias.Hostnames {
			for _, msg := range validation.IsDNS1123Subdomain(name) {
				errs = append(errs, field.Invalid(p.Child("hostnames").Index(j), name, msg))
			}
		}
	}
	return errs
}
