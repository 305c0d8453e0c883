package objects

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxGeneratedBase leaves room for the suffix in a name of 63 characters.
const maxGeneratedBase = 58

// prepareNew sets what the server alone decides of a new object's metadata.
func (r *Registry) prepareNew(k *Kind, namespace string, obj Object) error {
	if obj.GetResourceVersion() != "" {
		return apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	switch got := obj.GetNamespace(); {
	case !k.Namespaced:
		obj.SetNamespace("")
	case got != "" && got != namespace:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	default:
		obj.SetNamespace(namespace)
	}
	obj.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	obj.SetUID(r.config.NewUID())
	obj.SetCreationTimestamp(metav1.NewTime(r.config.Now()).Rfc3339Copy())
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	obj.SetSelfLink("")
	obj.SetGeneration(0)
	return nil
}

// generatedName is generateName, cut to leave room, and a random suffix.
func (r *Registry) generatedName(obj Object) string {
	base := obj.GetGenerateName()
	if len(base) > maxGeneratedBase {
		base = base[:maxGeneratedBase]
	}
	return base + r.config.Suffix()
}

// keepMetadata makes obj, which somebody wants in the place of old, carry on
// old's identity. What it then still says otherwise is for validation to refuse.
func keepMetadata(obj, old Object) {
	if obj.GetName() == "" {
		obj.SetName(old.GetName())
	}
	if obj.GetNamespace() == "" {
		obj.SetNamespace(old.GetNamespace())
	}
	if obj.GetUID() == "" {
		obj.SetUID(old.GetUID())
	}
	if created := obj.GetCreationTimestamp(); created.IsZero() {
		obj.SetCreationTimestamp(old.GetCreationTimestamp())
	}
	if old.GetDeletionTimestamp() != nil {
		obj.SetDeletionTimestamp(old.GetDeletionTimestamp())
	}
	if obj.GetDeletionGracePeriodSeconds() == nil {
		obj.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	}
	obj.SetResourceVersion(old.GetResourceVersion())
	obj.SetGeneration(old.GetGeneration())
	obj.SetSelfLink("")
}

// checkIdentity compares what obj says of the stored object with the stored
// object: another revision or UID means that the caller saw another state.
func checkIdentity(k *Kind, obj, old Object) error {
	if rev := obj.GetResourceVersion(); rev != "" && rev != "0" && rev != old.GetResourceVersion() {
		if _, err := strconv.ParseUint(rev, 10, 64); err != nil {
			return apierrors.NewInvalid(k.GroupVersionKind.GroupKind(), old.GetName(), field.ErrorList{
				field.Invalid(field.NewPath("metadata", "resourceVersion"), rev, "must be a number that this server handed out"),
			})
		}
		return conflict(k, old.GetName(), errModified)
	}
	return checkUID(k, obj.GetUID(), old)
}

func checkUID[T ~string](k *Kind, want T, old Object) error {
	if want != "" && string(want) != string(old.GetUID()) {
		return conflict(k, old.GetName(),
			fmt.Errorf("the precondition names UID %v, the object has %v", want, old.GetUID()))
	}
	return nil
}

// validateNew returns all that is wrong with a new object, or nil, as one 422.
func validateNew(k *Kind, obj Object) error {
	rule := k.ValidateName
	if rule == nil {
		rule = validation.NameIsDNSSubdomain
	}
	errs := validation.ValidateObjectMetaAccessor(obj, k.Namespaced, rule, field.NewPath("metadata"))
	errs = append(errs, validateFinalizers(obj, nil)...)
	if k.Validate != nil {
		errs = append(errs, k.Validate(obj)...)
	}
	return invalid(k, obj, errs)
}

// validateChange is validateNew for an object that takes the place of old.
func validateChange(k *Kind, obj, old Object) error {
	errs := validation.ValidateObjectMetaAccessorUpdate(obj, old, field.NewPath("metadata"))
	errs = append(errs, validateFinalizers(obj, old.GetFinalizers())...)
	if k.Validate != nil {
		errs = append(errs, k.Validate(obj)...)
	}
	if k.ValidateUpdate != nil {
		errs = append(errs, k.ValidateUpdate(obj, old)...)
	}
	return invalid(k, obj, errs)
}

// validateFinalizers follows Kubernetes' rule for its own kinds: a name without a
// domain is one of its own. What was there already may stay.
func validateFinalizers(obj Object, before []string) (errs field.ErrorList) {
	own := []string{string(corev1.FinalizerKubernetes), metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}
	for i, name := range obj.GetFinalizers() {
		if !strings.Contains(name, "/") && !slices.Contains(own, name) && !slices.Contains(before, name) {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "finalizers").Index(i), name,
				"is neither one of Kubernetes' own nor has it a domain: write it as example.com/"+name))
		}
	}
	return errs
}

// oneOfEachOwner drops owner references that are there before, and warns of it.
func oneOfEachOwner(obj Object) (warnings []string) {
	var once []metav1.OwnerReference
	for _, ref := range obj.GetOwnerReferences() {
		if slices.ContainsFunc(once, func(o metav1.OwnerReference) bool { return reflect.DeepEqual(o, ref) }) {
			warnings = append(warnings, fmt.Sprintf("metadata.ownerReferences: UID %s is there more than once, and is kept once", ref.UID))
			continue
		}
		once = append(once, ref)
	}
	if len(warnings) > 0 {
		obj.SetOwnerReferences(once)
	}
	return warnings
}

// invalid makes one Status of errs, each of them once: kinds may check metadata
// more strictly and then find some things a second time.
func invalid(k *Kind, obj Object, errs field.ErrorList) error {
	seen := map[string]bool{}
	var once field.ErrorList
	for _, e := range errs {
		if text := e.Error(); !seen[text] {
			seen[text] = true
			once = append(once, e)
		}
	}
	if len(once) == 0 {
		return nil
	}
	return apierrors.NewInvalid(k.GroupVersionKind.GroupKind(), obj.GetName(), once)
}

// countGeneration adds one when the spec changed and the kind has not counted.
func countGeneration(obj, old Object) {
	if old.GetGeneration() == 0 || obj.GetGeneration() != old.GetGeneration() {
		return
	}
	now, was := reflect.ValueOf(obj).Elem().FieldByName("Spec"), reflect.ValueOf(old).Elem().FieldByName("Spec")
	if now.IsValid() && !equality.Semantic.DeepEqual(now.Interface(), was.Interface()) {
		obj.SetGeneration(old.GetGeneration() + 1)
	}
}
