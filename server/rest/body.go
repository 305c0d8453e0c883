package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Media types of bodies.
const (
	mediaJSON     = "application/json"
	mediaYAML     = "application/yaml"
	mediaProtobuf = "application/vnd.kubernetes.protobuf"
)

// readBody reads a request's body, at most maxBody (http.MaxBytesReader), and
// the media type that it is said to have: JSON where nothing is said.
func readBody(r *http.Request) (data []byte, media string, err error) {
	media = mediaJSON
	if header := r.Header.Get("Content-Type"); header != "" {
		if media, _, err = mime.ParseMediaType(header); err != nil {
			return nil, "", badRequest("Content-Type %q cannot be read: %v", header, err)
		}
	}
	data, err = io.ReadAll(r.Body)
	var tooLarge *http.MaxBytesError
	if err != nil && !errors.As(err, &tooLarge) {
		return nil, "", badRequest("the request's body ended early: %v", err)
	}
	return data, media, err
}

// decode reads one object out of a body into obj. want is the kind that the
// address stands for; a body that names none is taken for it. faults are what
// strict decoding has to say: unknown and duplicate fields.
func decode(data []byte, media string, obj any, want schema.GroupVersionKind) (faults []error, err error) {
	switch media {
	case mediaJSON:
		return decodeJSON(data, obj, want)
	case mediaYAML:
		return decodeYAML(data, obj, want)
	case mediaProtobuf:
		return nil, decodeProtobuf(data, obj, want)
	}
	return nil, unsupportedMediaType(fmt.Sprintf("the body of the request was in an unknown format - accepted media types include: %s, %s, %s",
		mediaJSON, mediaYAML, mediaProtobuf))
}

// decodeYAML takes what is JSON, as kubectl's applies are, for JSON: that is cheap.
func decodeYAML(data []byte, obj any, want schema.GroupVersionKind) ([]error, error) {
	if json.Valid(data) {
		return decodeJSON(data, obj, want)
	}
	if err := checkYAML(data); err != nil {
		return nil, err
	}
	converted, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, badRequest("error decoding request body: %v", err)
	}
	faults, err := decodeJSON(converted, obj, want)
	if err != nil {
		return nil, err
	}
	// Converting lost the duplicates: the strict form names them, with lines.
	if _, err := yaml.YAMLToJSONStrict(data); err != nil {
		faults = append(faults, err)
	}
	return faults, nil
}

func decodeJSON(data []byte, obj any, want schema.GroupVersionKind) ([]error, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, badRequest("error decoding request body: it is empty, and must be a %s", want.Kind)
	}
	if err := checkShape(data); err != nil {
		return nil, err
	}
	var named struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &named); err != nil {
		return nil, badRequest("error decoding request body: %s", describe(data, err))
	}
	if err := checkKind(named.APIVersion, named.Kind, want); err != nil {
		return nil, err
	}
	if err := checkQuantities(data, obj); err != nil {
		return nil, err
	}
	faults, err := kjson.UnmarshalStrict(data, obj)
	if err != nil {
		return nil, cannotHandle(want, errors.New(describe(data, err)))
	}
	return faults, nil
}

// checkKind compares what a body says it is with what its address stands for.
func checkKind(apiVersion, kind string, want schema.GroupVersionKind) error {
	if apiVersion != "" && apiVersion != want.GroupVersion().String() {
		return badRequest("the API version in the data (%s) does not match the expected API version (%s)", apiVersion, want.GroupVersion())
	}
	if kind != "" && kind != want.Kind {
		return badRequest("%s in version %q cannot be handled as a %s: the address is for a %s", kind, want.GroupVersion(), want.Kind, want.Kind)
	}
	return nil
}

func cannotHandle(want schema.GroupVersionKind, err error) error {
	return badRequest("%s in version %q cannot be handled as a %s: %v", want.Kind, want.Version, want.Kind, err)
}

// describe adds the line to what encoding/json says of bad syntax.
func describe(data []byte, err error) string {
	if isSyntax, offset := kjson.SyntaxErrorOffset(err); isSyntax {
		offset = min(max(offset, 0), int64(len(data)))
		line := 1 + bytes.Count(data[:offset], []byte("\n"))
		return fmt.Sprintf("json: line %d: %v", line, err)
	}
	return err.Error()
}

// protobufPrefix starts every body in Kubernetes' protobuf form: "k8s" and a
// zero byte, then a runtime.Unknown that holds the object.
var protobufPrefix = []byte("k8s\x00")

type protobufObject interface{ Unmarshal([]byte) error }

func decodeProtobuf(data []byte, obj any, want schema.GroupVersionKind) error {
	into, ok := obj.(protobufObject)
	if !ok {
		return unsupportedMediaType(fmt.Sprintf("%s has no protobuf form: send %s", want.Kind, mediaJSON))
	}
	rest, ok := bytes.CutPrefix(data, protobufPrefix)
	if !ok {
		return badRequest("error decoding request body: it does not start as Kubernetes' protobuf does")
	}
	var unknown runtime.Unknown
	if err := unknown.Unmarshal(rest); err != nil {
		return badRequest("error decoding request body: %v", err)
	}
	if unknown.ContentEncoding != "" || unknown.ContentType != "" && unknown.ContentType != mediaProtobuf {
		return badRequest("error decoding request body: its content is %q %q, not protobuf", unknown.ContentType, unknown.ContentEncoding)
	}
	if err := checkKind(unknown.APIVersion, unknown.Kind, want); err != nil {
		return err
	}
	if hasMonstrous(unknown.Raw) {
		return badRequest("error decoding request body: it has a quantity larger or smaller than any that can be meant")
	}
	if err := into.Unmarshal(unknown.Raw); err != nil {
		return cannotHandle(want, err)
	}
	shape, err := json.Marshal(obj)
	if err != nil {
		return cannotHandle(want, err)
	}
	return checkShape(shape)
}
