package admission

import (
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateContainers checks what runs: init containers and containers, whose
// names are one set.
func validateContainers(s *corev1.PodSpec, volumes map[string]bool, fp *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(s.Containers) == 0 {
		errs = append(errs, field.Required(fp.Child("containers"), ""))
	}
	names := make(map[string]bool, len(s.Containers)+len(s.InitContainers))
	for i := range s.Containers {
		c, p := &s.Containers[i], fp.Child("containers").Index(i)
		errs = append(errs, uniqueLabel(c.Name, names, p.Child("name"))...)
		errs = append(errs, validateContainer(c, s, volumes, p)...)
	}
	for i := range s.InitContainers {
		c, p := &s.InitContainers[i], fp.Child("initContainers").Index(i)
		errs = append(errs, uniqueLabel(c.Name, names, p.Child("name"))...)
		errs = append(errs, validateContainer(c, s, volumes, p)...)
		errs = append(errs, validateInitContainer(c, p)...)
	}
	return errs
}

func validateContainer(c *corev1.Container, s *corev1.PodSpec, volumes map[string]bool, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case c.Image == "":
		errs = append(errs, field.Required(p.Child("image"), ""))
	case strings.TrimSpace(c.Image) != c.Image:
		errs = append(errs, field.Invalid(p.Child("image"), c.Image, "must not have leading or trailing whitespace"))
	}
	errs = append(errs, oneOf(c.ImagePullPolicy, p.Child("imagePullPolicy"),
		corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)...)
	errs = append(errs, oneOf(c.TerminationMessagePolicy, p.Child("terminationMessagePolicy"),
		corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)...)
	errs = append(errs, validatePorts(c.Ports, s.HostNetwork, p.Child("ports"))...)
	errs = append(errs, validateEnv(c.Env, s, p.Child("env"))...)
	errs = append(errs, validateEnvFrom(c.EnvFrom, p.Child("envFrom"))...)
	errs = append(errs, validateMounts(c.VolumeMounts, volumes, p.Child("volumeMounts"))...)
	errs = append(errs, validateProbes(c, p)...)
	errs = append(errs, validateSecurity(c.SecurityContext, p.Child("securityContext"))...)
	errs = append(errs, validateLifecycle(c.Lifecycle, s, p.Child("lifecycle"))...)
	return append(errs, validateResources(&c.Resources, p.Child("resources"))...)
}

// validateInitContainer has what holds for init containers alone: one that ends
// before the others begin has nothing to be probed for.
func validateInitContainer(c *corev1.Container, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.RestartPolicy != nil {
		if *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			return nil
		}
		errs = append(errs, field.NotSupported(p.Child("restartPolicy"), *c.RestartPolicy, []corev1.ContainerRestartPolicy{corev1.ContainerRestartPolicyAlways}))
	}
	const words = "may not be set for init containers without restartPolicy=Always"
	for name, set := range map[string]bool{
		"lifecycle": c.Lifecycle != nil, "livenessProbe": c.LivenessProbe != nil,
		"readinessProbe": c.ReadinessProbe != nil, "startupProbe": c.StartupProbe != nil,
	} {
		if set {
			errs = append(errs, field.Forbidden(p.Child(name), words))
		}
	}
	return errs
}

func validatePorts(ports []corev1.ContainerPort, hostNetwork bool, fp *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	for i, port := range ports {
		p := fp.Index(i)
		if port.Name != "" {
			for _, msg := range validation.IsValidPortName(port.Name) {
				errs = append(errs, field.Invalid(p.Child("name"), port.Name, msg))
			}
			if names[port.Name] {
				errs = append(errs, field.Duplicate(p.Child("name"), port.Name))
			}
			names[port.Name] = true
		}
		if port.ContainerPort == 0 {
			errs = append(errs, field.Required(p.Child("containerPort"), ""))
		} else {
			for _, msg := range validation.IsValidPortNum(int(port.ContainerPort)) {
				errs = append(errs, field.Invalid(p.Child("containerPort"), port.ContainerPort, msg))
			}
		}
		errs = append(errs, oneOf(port.Protocol, p.Child("protocol"),
			corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)...)
		errs = append(errs, validateHostPort(port, hostNetwork, p)...)
	}
	return errs
}

func validateMounts(mounts []corev1.VolumeMount, volumes map[string]bool, fp *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, m := range mounts {
		p := fp.Index(i)
		if m.Name == "" {
			errs = append(errs, field.Required(p.Child("name"), ""))
		} else if !volumes[m.Name] {
			errs = append(errs, field.NotFound(p.Child("name"), m.Name))
		}
		switch {
		case m.MountPath == "":
			errs = append(errs, field.Required(p.Child("mountPath"), ""))
		case strings.Contains(m.MountPath, ":"):
			errs = append(errs, field.Invalid(p.Child("mountPath"), m.MountPath, "must not contain ':'"))
		case !path.IsAbs(m.MountPath):
			errs = append(errs, field.Invalid(p.Child("mountPath"), m.MountPath, "must be an absolute path"))
		case path.Clean(m.MountPath) == "/":
			errs = append(errs, field.Invalid(p.Child("mountPath"), m.MountPath, "must not be the root of the container"))
		case seen[m.MountPath]:
			errs = append(errs, field.Invalid(p.Child("mountPath"), m.MountPath, "must be unique"))
		}
		seen[m.MountPath] = true
		errs = append(errs, validateSubPath(m, p)...)
	}
	return errs
}

func validateResources(r *corev1.ResourceRequirements, p *field.Path) field.ErrorList {
	errs := validateContainerQuantities(r.Limits, p.Child("limits"))
	errs = append(errs, validateContainerQuantities(r.Requests, p.Child("requests"))...)
	for name, request := range r.Requests {
		limit, limited := r.Limits[name]
		at := p.Child("requests").Key(string(name))
		switch {
		case limited && request.Cmp(limit) > 0:
			errs = append(errs, field.Invalid(at, request.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String())))
		case isExtended(name) && (!limited || request.Cmp(limit) != 0):
			errs = append(errs, field.Invalid(at, request.String(), fmt.Sprintf("must be equal to %s limit", name)))
		}
	}
	return errs
}

func validateContainerQuantities(list corev1.ResourceList, p *field.Path) field.ErrorList {
	errs := validateQuantities(list, p)
	for name, q := range list {
		at := p.Key(string(name))
		switch {
		case !isExtended(name) && !isNative(name):
			errs = append(errs, field.Invalid(at, string(name), "must be a standard resource type or fully qualified"))
		case isExtended(name) && q.MilliValue()%1000 != 0:
			errs = append(errs, field.Invalid(at, q.String(), "must be an integer"))
		}
	}
	return errs
}

// isNative says that Kubernetes itself gives the resource to containers.
func isNative(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	}
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// isExtended says that the resource is a device or the like, counted in whole
// ones and named within a domain that is not Kubernetes' own.
func isExtended(name corev1.ResourceName) bool {
	domain, _, qualified := strings.Cut(string(name), "/")
	return qualified && !strings.HasSuffix(domain, "kubernetes.io") && !strings.HasPrefix(domain, "requests.")
}

func validateResourceName(name string, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range validation.IsQualifiedName(name) {
		errs = append(errs, field.Invalid(p, name, msg))
	}
	return errs
}
