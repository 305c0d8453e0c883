package admission

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateEnv(env []corev1.EnvVar, s *corev1.PodSpec, fp *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, e := range env {
		p := fp.Index(i)
		if e.Name == "" {
			errs = append(errs, field.Required(p.Child("name"), ""))
		} else {
			for _, msg := range validation.IsRelaxedEnvVarName(e.Name) {
				errs = append(errs, field.Invalid(p.Child("name"), e.Name, msg))
			}
		}
		if strings.ContainsRune(e.Value, 0) {
			errs = append(errs, field.Invalid(p.Child("value"), e.Value, "must not contain a NUL byte"))
		}
		if e.ValueFrom != nil {
			errs = append(errs, validateEnvSource(&e, s, p.Child("valueFrom"))...)
		}
	}
	return errs
}

// validateEnvSource wants exactly one source, and no value beside it.
func validateEnvSource(e *corev1.EnvVar, s *corev1.PodSpec, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	sources := 0
	from := e.ValueFrom
	if ref := from.FieldRef; ref != nil {
		sources++
		errs = append(errs, validateFieldRef(ref, p.Child("fieldRef"))...)
	}
	if ref := from.ResourceFieldRef; ref != nil {
		sources++
		errs = append(errs, validateResourceRef(ref, s, p.Child("resourceFieldRef"))...)
	}
	if ref := from.ConfigMapKeyRef; ref != nil {
		sources++
		errs = append(errs, validateKeyRef(ref.Name, ref.Key, p.Child("configMapKeyRef"))...)
	}
	if ref := from.SecretKeyRef; ref != nil {
		sources++
		errs = append(errs, validateKeyRef(ref.Name, ref.Key, p.Child("secretKeyRef"))...)
	}
	switch {
	case from.FileKeyRef != nil: // refused by the table of fields
	case sources == 0:
		errs = append(errs, field.Invalid(p, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"))
	case e.Value != "":
		errs = append(errs, field.Invalid(p, "", "may not be specified when `value` is not empty"))
	case sources > 1:
		errs = append(errs, field.Invalid(p, "", "may not have more than one field specified at a time"))
	}
	return errs
}

func validateKeyRef(name, key string, p *field.Path) field.ErrorList {
	errs := validateRefName(name, p.Child("name"))
	if key == "" {
		return append(errs, field.Required(p.Child("key"), ""))
	}
	for _, msg := range validation.IsConfigMapKey(key) {
		errs = append(errs, field.Invalid(p.Child("key"), key, msg))
	}
	return errs
}

// envFieldPaths are the fields of a pod that a variable may take, beside one
// label or annotation.
var envFieldPaths = []string{
	"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
	"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
}

func validateFieldRef(ref *corev1.ObjectFieldSelector, p *field.Path) field.ErrorList {
	return validateFieldRefOf(ref, envFieldPaths, p)
}

func validateFieldRefOf(ref *corev1.ObjectFieldSelector, paths []string, p *field.Path) field.ErrorList {
	at := p.Child("fieldPath")
	switch {
	case ref.APIVersion != "v1":
		return field.ErrorList{field.Invalid(p.Child("apiVersion"), ref.APIVersion, "must be v1")}
	case ref.FieldPath == "":
		return field.ErrorList{field.Required(at, "")}
	case slices.Contains(paths, ref.FieldPath):
		return nil
	}
	for _, list := range []string{"metadata.labels", "metadata.annotations"} {
		key, found := strings.CutPrefix(ref.FieldPath, list+"['")
		key, closed := strings.CutSuffix(key, "']")
		if !found || !closed {
			continue
		}
		var errs field.ErrorList
		if list == "metadata.annotations" {
			key = strings.ToLower(key) // as of old, annotations' keys may have capitals
		}
		for _, msg := range validation.IsQualifiedName(key) {
			errs = append(errs, field.Invalid(at, ref.FieldPath, msg))
		}
		return errs
	}
	return field.ErrorList{field.NotSupported(at, ref.FieldPath, append(slices.Clone(paths), "metadata.annotations['<KEY>']", "metadata.labels['<KEY>']"))}
}

// envDivisors are the divisors of each resource that a variable may take.
var envDivisors = map[string][]string{
	"cpu":               {"1m", "1"},
	"memory":            {"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"},
	"ephemeral-storage": {"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"},
}

func validateResourceRef(ref *corev1.ResourceFieldSelector, s *corev1.PodSpec, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	list, name, _ := strings.Cut(ref.Resource, ".")
	divisors, known := envDivisors[name]
	switch {
	case ref.Resource == "":
		return field.ErrorList{field.Required(p.Child("resource"), "")}
	case !known || list != "limits" && list != "requests":
		return field.ErrorList{field.NotSupported(p.Child("resource"), ref.Resource, []string{
			"limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory",
		})}
	}
	if ref.ContainerName != "" && !hasContainer(s, ref.ContainerName) {
		errs = append(errs, field.NotFound(p.Child("containerName"), ref.ContainerName))
	}
	if !ref.Divisor.IsZero() && !slices.ContainsFunc(divisors, func(d string) bool { return ref.Divisor.Cmp(resource.MustParse(d)) == 0 }) {
		errs = append(errs, field.NotSupported(p.Child("divisor"), ref.Divisor.String(), divisors))
	}
	return errs
}

func hasContainer(s *corev1.PodSpec, name string) bool {
	is := func(c corev1.Container) bool { return c.Name == name }
	return slices.ContainsFunc(s.Containers, is) || slices.ContainsFunc(s.InitContainers, is)
}

func validateEnvFrom(all []corev1.EnvFromSource, fp *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, from := range all {
		p := fp.Index(i)
		if from.Prefix != "" {
			for _, msg := range validation.IsRelaxedEnvVarName(from.Prefix) {
				errs = append(errs, field.Invalid(p.Child("prefix"), from.Prefix, msg))
			}
		}
		switch {
		case from.ConfigMapRef != nil && from.SecretRef != nil:
			errs = append(errs, field.Invalid(p, "", "may not have more than one field specified at a time"))
		case from.ConfigMapRef != nil:
			errs = append(errs, validateRefName(from.ConfigMapRef.Name, p.Child("configMapRef", "name"))...)
		case from.SecretRef != nil:
			errs = append(errs, validateRefName(from.SecretRef.Name, p.Child("secretRef", "name"))...)
		default:
			errs = append(errs, field.Invalid(p, "", "must specify one of: `configMapRef` or `secretRef`"))
		}
	}
	return errs
}
