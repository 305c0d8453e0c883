package admission

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// volumeFieldPaths are the fields of a pod that a file may show, beside one label
// or annotation.
var volumeFieldPaths = []string{
	"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid",
}

func validateDownward(items []corev1.DownwardAPIVolumeFile, spec *corev1.PodSpec, fp *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, item := range items {
		p := fp.Index(i)
		errs = append(errs, validateInsidePath(item.Path, p.Child("path"))...)
		errs = append(errs, validateMode(item.Mode, p.Child("mode"))...)
		switch {
		case item.FieldRef != nil && item.ResourceFieldRef != nil:
			errs = append(errs, field.Invalid(p, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"))
		case item.FieldRef != nil:
			errs = append(errs, validateFieldRefOf(item.FieldRef, volumeFieldPaths, p.Child("fieldRef"))...)
		case item.ResourceFieldRef != nil:
			if item.ResourceFieldRef.ContainerName == "" {
				errs = append(errs, field.Required(p.Child("resourceFieldRef", "containerName"), ""))
			}
			errs = append(errs, validateResourceRef(item.ResourceFieldRef, spec, p.Child("resourceFieldRef"))...)
		default:
			errs = append(errs, field.Required(p, "one of fieldRef and resourceFieldRef is required"))
		}
	}
	return errs
}

// validateProjected wants each source to be one thing, and no path twice.
func validateProjected(v *corev1.ProjectedVolumeSource, spec *corev1.PodSpec, fp *field.Path) field.ErrorList {
	errs := validateMode(v.DefaultMode, fp.Child("defaultMode"))
	taken := map[string]bool{}
	for i := range v.Sources {
		s, p := &v.Sources[i], fp.Child("sources").Index(i)
		count := 0
		var paths []string
		if s.Secret != nil {
			count++
			at := p.Child("secret")
			errs = append(errs, validateRefName(s.Secret.Name, at.Child("name"))...)
			errs = append(errs, validateItems(s.Secret.Items, at.Child("items"))...)
			paths = append(paths, itemPaths(s.Secret.Items)...)
		}
		if s.ConfigMap != nil {
			count++
			at := p.Child("configMap")
			errs = append(errs, validateRefName(s.ConfigMap.Name, at.Child("name"))...)
			errs = append(errs, validateItems(s.ConfigMap.Items, at.Child("items"))...)
			paths = append(paths, itemPaths(s.ConfigMap.Items)...)
		}
		if s.DownwardAPI != nil {
			count++
			errs = append(errs, validateDownward(s.DownwardAPI.Items, spec, p.Child("downwardAPI", "items"))...)
			for _, item := range s.DownwardAPI.Items {
				paths = append(paths, item.Path)
			}
		}
		if s.ServiceAccountToken != nil || s.ClusterTrustBundle != nil || s.PodCertificate != nil {
			count++ // the table of fields judges them
		}
		if count != 1 {
			errs = append(errs, field.Invalid(p, "", "must be exactly one source"))
		}
		for _, name := range paths {
			if name = path.Clean(name); taken[name] {
				errs = append(errs, field.Invalid(p, name, "conflicting duplicate paths"))
			}
			taken[name] = true
		}
	}
	return errs
}

func itemPaths(items []corev1.KeyToPath) []string {
	var paths []string
	for _, item := range items {
		paths = append(paths, item.Path)
	}
	return paths
}

func validateSubPath(m corev1.VolumeMount, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if m.SubPath != "" && m.SubPathExpr != "" {
		errs = append(errs, field.Invalid(p.Child("subPathExpr"), m.SubPathExpr, "subPathExpr and subPath are mutually exclusive"))
	}
	for name, value := range map[string]string{"subPath": m.SubPath, "subPathExpr": m.SubPathExpr} {
		switch {
		case path.IsAbs(value):
			errs = append(errs, field.Invalid(p.Child(name), value, "must be a relative path"))
		case slices.Contains(strings.Split(value, "/"), ".."):
			errs = append(errs, field.Invalid(p.Child(name), value, "must not contain '..'"))
		}
	}
	return errs
}
