package admission

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// DefaultSecret sets the type and moves stringData, which is never stored, into data.
func DefaultSecret(s *corev1.Secret) {
	setDefault(&s.Type, corev1.SecretTypeOpaque)
	for key, value := range s.StringData {
		if s.Data == nil {
			s.Data = make(map[string][]byte, len(s.StringData))
		}
		s.Data[key] = []byte(value)
	}
	s.StringData = nil
}

// ValidateSecret checks keys, size, and what each well-known type must have.
func ValidateSecret(s *corev1.Secret) field.ErrorList {
	var errs field.ErrorList
	data := field.NewPath("data")
	size := 0
	for _, key := range slices.Sorted(maps.Keys(s.Data)) {
		errs = append(errs, validateDataKey(key, data.Key(key))...)
		size += len(s.Data[key])
	}
	if size > maxDataBytes {
		errs = append(errs, field.TooLong(data, "", maxDataBytes))
	}
	return append(errs, validateSecretType(s, data)...)
}

func validateSecretType(s *corev1.Secret, data *field.Path) field.ErrorList {
	switch s.Type {
	case corev1.SecretTypeServiceAccountToken:
		if s.Annotations[corev1.ServiceAccountNameKey] == "" {
			return field.ErrorList{field.Required(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), "")}
		}
	case corev1.SecretTypeDockercfg:
		return requireJSON(s.Data, data, corev1.DockerConfigKey)
	case corev1.SecretTypeDockerConfigJson:
		return requireJSON(s.Data, data, corev1.DockerConfigJsonKey)
	case corev1.SecretTypeBasicAuth:
		_, user := s.Data[corev1.BasicAuthUsernameKey]
		_, password := s.Data[corev1.BasicAuthPasswordKey]
		if !user && !password {
			return field.ErrorList{
				field.Required(data.Key(corev1.BasicAuthUsernameKey), "this or the password"),
				field.Required(data.Key(corev1.BasicAuthPasswordKey), "this or the username"),
			}
		}
	case corev1.SecretTypeSSHAuth:
		if len(s.Data[corev1.SSHAuthPrivateKey]) == 0 {
			return field.ErrorList{field.Required(data.Key(corev1.SSHAuthPrivateKey), "")}
		}
	case corev1.SecretTypeTLS:
		var errs field.ErrorList
		for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
			if _, ok := s.Data[key]; !ok {
				errs = append(errs, field.Required(data.Key(key), ""))
			}
		}
		return errs
	}
	return nil
}

// requireJSON wants JSON at key. The error never shows the value.
func requireJSON(values map[string][]byte, data *field.Path, key string) field.ErrorList {
	value, ok := values[key]
	if !ok {
		return field.ErrorList{field.Required(data.Key(key), "")}
	}
	if !json.Valid(value) {
		return field.ErrorList{field.Invalid(data.Key(key), "<secret contents redacted>", "must be JSON")}
	}
	return nil
}

// ValidateSecretUpdate holds the type, and all of an immutable Secret.
func ValidateSecretUpdate(s, old *corev1.Secret) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, sameOrInvalid(s.Type, old.Type, field.NewPath("type"))...)
	if !isTrue(old.Immutable) {
		return errs
	}
	if !isTrue(s.Immutable) {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), "field is immutable when `immutable` is set"))
	}
	if !maps.EqualFunc(s.Data, old.Data, bytes.Equal) {
		errs = append(errs, field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set"))
	}
	return errs
}
