package admission

import (
	"path"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateVolumes returns the names of the volumes as well.
func validateVolumes(volumes []corev1.Volume, spec *corev1.PodSpec, fp *field.Path) (map[string]bool, field.ErrorList) {
	var errs field.ErrorList
	names := make(map[string]bool, len(volumes))
	for i := range volumes {
		v, p := &volumes[i], fp.Index(i)
		errs = append(errs, uniqueLabel(v.Name, names, p.Child("name"))...)
		errs = append(errs, validateVolumeSource(&v.VolumeSource, spec, p)...)
	}
	return names, errs
}

// uniqueLabel wants name to be a DNS label that is not in seen, and adds it.
func uniqueLabel(name string, seen map[string]bool, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if name == "" {
		return field.ErrorList{field.Required(p, "")}
	}
	for _, msg := range validation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(p, name, msg))
	}
	if seen[name] {
		errs = append(errs, field.Duplicate(p, name))
	}
	seen[name] = true
	return errs
}

func validateVolumeSource(s *corev1.VolumeSource, spec *corev1.PodSpec, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	sources := 0
	for v, i := reflect.ValueOf(s).Elem(), 0; i < v.NumField(); i++ {
		if v.Field(i).IsNil() {
			continue
		}
		if sources++; sources > 1 {
			name, _ := jsonName(v.Type().Field(i))
			errs = append(errs, field.Forbidden(p.Child(name), "may not specify more than 1 volume type"))
		}
	}
	if s.EmptyDir != nil {
		errs = append(errs, validateEmptyDir(s.EmptyDir, p.Child("emptyDir"))...)
	}
	if s.ConfigMap != nil {
		cm := p.Child("configMap")
		errs = append(errs, validateRefName(s.ConfigMap.Name, cm.Child("name"))...)
		errs = append(errs, validateMode(s.ConfigMap.DefaultMode, cm.Child("defaultMode"))...)
		errs = append(errs, validateItems(s.ConfigMap.Items, cm.Child("items"))...)
	}
	if s.Secret != nil {
		sec := p.Child("secret")
		errs = append(errs, validateRefName(s.Secret.SecretName, sec.Child("secretName"))...)
		errs = append(errs, validateMode(s.Secret.DefaultMode, sec.Child("defaultMode"))...)
		errs = append(errs, validateItems(s.Secret.Items, sec.Child("items"))...)
	}
	if s.HostPath != nil {
		errs = append(errs, validateHostPath(s.HostPath, p.Child("hostPath"))...)
	}
	if s.DownwardAPI != nil {
		errs = append(errs, validateMode(s.DownwardAPI.DefaultMode, p.Child("downwardAPI", "defaultMode"))...)
		errs = append(errs, validateDownward(s.DownwardAPI.Items, spec, p.Child("downwardAPI", "items"))...)
	}
	if s.Projected != nil {
		errs = append(errs, validateProjected(s.Projected, spec, p.Child("projected"))...)
	}
	return errs
}

func validateEmptyDir(e *corev1.EmptyDirVolumeSource, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch e.Medium {
	case corev1.StorageMediumDefault, corev1.StorageMediumMemory:
	default:
		errs = append(errs, field.NotSupported(p.Child("medium"), e.Medium,
			[]corev1.StorageMedium{corev1.StorageMediumDefault, corev1.StorageMediumMemory}))
	}
	if e.SizeLimit != nil {
		errs = append(errs, nonNegative(*e.SizeLimit, p.Child("sizeLimit"))...)
		if e.Medium != corev1.StorageMediumMemory && !e.SizeLimit.IsZero() {
			errs = append(errs, field.Forbidden(p.Child("sizeLimit"), "the size of a volume on the disk can not be limited; remove it, or set medium: Memory"))
		}
	}
	return errs
}

// validateRefName wants the name of an object; the node makes no path of it
// but asks the server for it.
func validateRefName(name string, p *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(p, "")}
	}
	var errs field.ErrorList
	for _, msg := range apivalidation.NameIsDNSSubdomain(name, false) {
		errs = append(errs, field.Invalid(p, name, msg))
	}
	return errs
}

func validateMode(mode *int32, p *field.Path) field.ErrorList {
	if mode != nil && (*mode < 0 || *mode > 0o777) {
		return field.ErrorList{field.Invalid(p, *mode, "must be a number between 0 and 0777 (octal), both inclusive")}
	}
	return nil
}

func validateItems(items []corev1.KeyToPath, fp *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, item := range items {
		p := fp.Index(i)
		if item.Key == "" {
			errs = append(errs, field.Required(p.Child("key"), ""))
		}
		errs = append(errs, validateInsidePath(item.Path, p.Child("path"))...)
		errs = append(errs, validateMode(item.Mode, p.Child("mode"))...)
	}
	return errs
}

// validateInsidePath wants a relative path that stays where it begins.
func validateInsidePath(s string, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case s == "":
		return field.ErrorList{field.Required(p, "")}
	case path.IsAbs(s):
		errs = append(errs, field.Invalid(p, s, "must be a relative path"))
	case strings.ContainsRune(s, 0):
		errs = append(errs, field.Invalid(p, s, "must not contain a NUL byte"))
	}
	for _, part := range strings.Split(s, "/") {
		if part == ".." {
			errs = append(errs, field.Invalid(p, s, "must not contain '..'"))
			break
		}
	}
	if strings.HasPrefix(s, "..") && len(errs) == 0 {
		errs = append(errs, field.Invalid(p, s, "must not start with '..'"))
	}
	return errs
}
