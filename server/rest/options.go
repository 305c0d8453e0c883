package rest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bramble.dev/bramble/server/objects"
)

// writeOptions is what the query of a create, update or patch says.
type writeOptions struct {
	objects.WriteOptions
	fieldValidation string // Strict, Warn or Ignore
	force           bool   // of an apply
}

// readWriteOptions checks the query as Kubernetes does; optionsKind
// ("CreateOptions") is for its errors.
func readWriteOptions(r *http.Request, optionsKind string) (writeOptions, error) {
	q := r.URL.Query()
	var o writeOptions
	manager := q.Get("fieldManager")
	var all field.ErrorList
	all = append(all, validation.ValidateFieldManager(manager, field.NewPath("fieldManager"))...)
	all = append(all, validation.ValidateDryRun(field.NewPath("dryRun"), q["dryRun"])...)
	all = append(all, validation.ValidateFieldValidation(field.NewPath("fieldValidation"), q.Get("fieldValidation"))...)
	if len(all) > 0 {
		return o, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: optionsKind}, "", all)
	}
	o.FieldManager = managerOf(manager, r.UserAgent())
	o.DryRun = len(q["dryRun"]) > 0
	o.force = truth(q, "force")
	if o.fieldValidation = q.Get("fieldValidation"); o.fieldValidation == "" {
		o.fieldValidation = metav1.FieldValidationWarn
	}
	return o, nil
}

// managerOf names the field manager: as the client says, else the start of its
// User-Agent (Kubernetes' rule).
func managerOf(manager, userAgent string) string {
	if manager != "" {
		return manager
	}
	name, _, _ := strings.Cut(userAgent, "/")
	name = strings.ToValidUTF8(name, "")
	for len(name) > validation.FieldManagerMaxLength {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	if name == "" {
		return "unknown"
	}
	return name
}

// judge makes warnings of strict decoding's faults, or an error, as the client
// wishes.
func (o writeOptions) judge(faults []error, want schema.GroupVersionKind) (warnings []string, err error) {
	if len(faults) == 0 || o.fieldValidation == metav1.FieldValidationIgnore {
		return nil, nil
	}
	texts := make([]string, len(faults))
	for i, fault := range faults {
		texts[i] = fault.Error()
	}
	if o.fieldValidation == metav1.FieldValidationStrict {
		return nil, cannotHandle(want, errors.New("strict decoding error: "+strings.Join(texts, ", ")))
	}
	return texts, nil
}

// checkNamespace makes the object's namespace that of the address.
func checkNamespace(obj objects.Object, namespaced bool, namespace string) error {
	switch got := obj.GetNamespace(); {
	case !namespaced:
		obj.SetNamespace("")
	case got == "":
		obj.SetNamespace(namespace)
	case got != namespace:
		return badRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// checkName compares the object's name with the address's.
func checkName(obj objects.Object, name string) error {
	switch got := obj.GetName(); got {
	case "":
		return badRequest("the name of the object (%s based on URL) was undeterminable: name must be provided", name)
	case name:
		return nil
	default:
		return badRequest("the name of the object (%s) does not match the name on the URL (%s)", got, name)
	}
}

// setKind puts the kind's own names on an object, whatever its body said.
func setKind(obj objects.Object, k *objects.Kind) {
	obj.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
}

func wrongType(k *objects.Kind, obj any) error {
	return fmt.Errorf("cannot use a %T as a %s", obj, k.Kind)
}
