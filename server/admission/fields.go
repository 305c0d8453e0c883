package admission

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxDataBytes is how much a ConfigMap or a Secret may hold (Kubernetes' 1 MiB).
const maxDataBytes = 1 << 20

// sameOrInvalid returns an error at path if a field that must not change did.
func sameOrInvalid(now, was any, path *field.Path) field.ErrorList {
	if equality.Semantic.DeepEqual(now, was) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, now, "field is immutable")}
}

// setDefault gives *p the value v if it has none.
func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// setDefaultPtr gives *p a pointer to v if it has none.
func setDefaultPtr[T any](p **T, v T) {
	if *p == nil {
		*p = &v
	}
}
