package admission

import (
	"reflect"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxDataBytes is how much a ConfigMap or a Secret may hold (Kubernetes' 1 MiB).
const maxDataBytes = 1 << 20

func metadataPath() *field.Path { return field.NewPath("metadata") }

func validateNamespacedMeta(m *metav1.ObjectMeta) field.ErrorList {
	return apivalidation.ValidateObjectMeta(m, true, apivalidation.NameIsDNSSubdomain, metadataPath())
}

func validateClusterMeta(m *metav1.ObjectMeta) field.ErrorList {
	return apivalidation.ValidateObjectMeta(m, false, apivalidation.NameIsDNSSubdomain, metadataPath())
}

// ValidateMetaUpdate is what may change in any object's metadata.
func ValidateMetaUpdate(m, old *metav1.ObjectMeta) field.ErrorList {
	return apivalidation.ValidateObjectMetaUpdate(m, old, metadataPath())
}

// sameOrInvalid returns an error at path if a field that must not change did.
func sameOrInvalid[T any](now, was T, path *field.Path) field.ErrorList {
	if reflect.DeepEqual(now, was) {
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
