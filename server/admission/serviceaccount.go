package admission

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateServiceAccount checks that each pull secret has a name.
func ValidateServiceAccount(s *corev1.ServiceAccount) field.ErrorList {
	var errs field.ErrorList
	for i, ref := range s.ImagePullSecrets {
		if ref.Name == "" {
			errs = append(errs, field.Required(field.NewPath("imagePullSecrets").Index(i).Child("name"), "name the Secret that the images are pulled with"))
		}
	}
	return errs
}
