package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"

	"bramble.dev/bramble/server/objects"
)

// Limits of a JSON patch. A copy can double the document, so the document is
// measured after each.
const (
	maxPatchOperations = 10000
	maxPatchCopies     = 100
)

// patcher is a patch that was read. apply turns an object's JSON into another's;
// its errors are for the client. faults are what strict decoding finds in the
// patch itself.
type patcher struct {
	apply  func(before []byte) ([]byte, error)
	faults []error
}

// readPatch checks a patch's syntax. newObject is for the strategic merge, which
// reads the type's tags.
func readPatch(media types.PatchType, data []byte, newObject func() objects.Object) (patcher, error) {
	switch media {
	case types.JSONPatchType:
		return readJSONPatch(data)
	case types.MergePatchType:
		faults, err := checkMerge(data)
		return patcher{faults: faults, apply: func(before []byte) ([]byte, error) {
			return patchResult(jsonpatch.MergePatch(before, data))
		}}, err
	case types.StrategicMergePatchType:
		faults, err := checkMerge(data)
		return patcher{faults: faults, apply: func(before []byte) ([]byte, error) {
			return strategic(before, data, newObject())
		}}, err
	}
	return patcher{}, unsupportedMediaType(fmt.Sprintf("the body of the request was in an unknown format - accepted media types include: %s, %s, %s, %s",
		types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType, types.ApplyYAMLPatchType))
}

// checkMerge wants a JSON object and finds its duplicate fields. Unknown ones
// show when the outcome is decoded.
func checkMerge(data []byte) (faults []error, err error) {
	if err := checkShape(data); err != nil {
		return nil, err
	}
	var fields map[string]any
	faults, err = kjson.UnmarshalStrict(data, &fields, kjson.DisallowDuplicateFields)
	if err != nil {
		return nil, badRequest("error decoding patch: %s", describe(data, err))
	}
	if fields == nil {
		return nil, badRequest("error decoding patch: it must be a JSON object")
	}
	return faults, nil
}

func readJSONPatch(data []byte) (patcher, error) {
	var operations []struct {
		Op string `json:"op"`
	}
	if err := json.Unmarshal(data, &operations); err != nil {
		return patcher{}, badRequest("error decoding patch: %s", describe(data, err))
	}
	if len(operations) > maxPatchOperations {
		return patcher{}, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"The allowed maximum operations in a JSON patch is %d, got %d", maxPatchOperations, len(operations)))
	}
	var values []json.RawMessage // the same, uncut
	if err := json.Unmarshal(data, &values); err != nil {
		return patcher{}, badRequest("error decoding patch: %s", describe(data, err))
	}
	for _, value := range values {
		if err := checkShape(value); err != nil {
			return patcher{}, err
		}
	}
	copies := 0
	for _, o := range operations {
		switch o.Op {
		case "add", "remove", "replace", "move", "test":
		case "copy":
			copies++
		default:
			return patcher{}, badRequest("error decoding patch: unexpected operation %q", o.Op)
		}
	}
	if copies > maxPatchCopies {
		return patcher{}, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("a JSON patch may copy %d times, not %d", maxPatchCopies, copies))
	}
	p, err := jsonpatch.DecodePatch(data)
	if err != nil {
		return patcher{}, badRequest("error decoding patch: %v", err)
	}
	return patcher{apply: func(before []byte) ([]byte, error) { return applyJSONPatch(p, before) }}, nil
}

// applyJSONPatch applies p in pieces that end with a copy.
func applyJSONPatch(p jsonpatch.Patch, doc []byte) ([]byte, error) {
	for start := 0; start < len(p); {
		end := start + 1
		for end < len(p) && p[end-1].Kind() != "copy" {
			end++
		}
		var err error
		if doc, err = patchResult(p[start:end].Apply(doc)); err != nil {
			return nil, err
		}
		if len(doc) > maxBody {
			return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the patched object would be larger than %d bytes", maxBody))
		}
		start = end
	}
	return doc, nil
}

// patchResult makes a patch that does not fit the object a 422.
func patchResult(after []byte, err error) ([]byte, error) {
	if err == nil {
		return after, nil
	}
	return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: "the server rejected our request due to an error in our request: " + err.Error(),
	}}
}

func strategic(before, patch []byte, obj objects.Object) ([]byte, error) {
	after, err := strategicpatch.StrategicMergePatch(before, patch, obj)
	switch {
	case err == nil:
		return after, nil
	case errors.Is(err, mergepatch.ErrBadJSONDoc), errors.Is(err, mergepatch.ErrBadPatchFormatForPrimitiveList),
		errors.Is(err, mergepatch.ErrBadPatchFormatForRetainKeys), errors.Is(err, mergepatch.ErrBadPatchFormatForSetElementOrderList),
		errors.Is(err, mergepatch.ErrUnsupportedStrategicMergePatchFormat):
		return nil, badRequest("%v", err)
	}
	return patchResult(nil, err)
}
